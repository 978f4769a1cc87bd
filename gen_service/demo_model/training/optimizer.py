"""Muon for the hidden matrices, Adam for the rest; fp32 master weights beside a bf16 model."""

import torch
from torch import Tensor, nn

# Quintic Newton-Schulz coefficients of Jordan et al. (2024), "Muon: an optimizer for hidden layers".
_NEWTON_SCHULZ = (3.4445, -4.7750, 2.0315)
_NEWTON_SCHULZ_STEPS = 5


def orthogonalize(matrices: Tensor) -> Tensor:
    """Push the singular values of each matrix towards one. [n, rows, columns] -> same shape, bf16."""
    a, b, c = _NEWTON_SCHULZ
    x: Tensor = matrices.bfloat16()
    tall = x.shape[1] > x.shape[2]
    x = x.mT if tall else x
    x = x / (x.norm(dim=(1, 2), keepdim=True) + 1e-7)
    for _ in range(_NEWTON_SCHULZ_STEPS):
        gram = x @ x.mT
        x = a * x + (b * gram + c * gram @ gram) @ x
    return x.mT if tall else x


class Optimizer:
    """Updates the parameters of `model` in place; the learning rates follow the factor given to `step`."""

    MUON_RATE = 0.008
    MUON_MOMENTUM = 0.95
    ADAM_RATE = 0.002
    ADAM_BETAS = (0.9, 0.95)
    WEIGHT_DECAY = 0.02

    def __init__(self, model: nn.Module) -> None:
        self._parameters = dict(model.named_parameters())
        self._matrices: dict[torch.Size, list[str]] = {}
        self._others: list[str] = []
        for name, parameter in self._parameters.items():
            if parameter.ndim == 2 and "embed" not in name:
                self._matrices.setdefault(parameter.shape, []).append(name)
            else:
                self._others.append(name)
        self.masters = {name: p.detach().float().clone() for name, p in self._parameters.items()}
        self.momentum = {name: torch.zeros_like(master) for name, master in self.masters.items()}
        self.variance = {name: torch.zeros_like(self.masters[name]) for name in self._others}
        self.steps = 0

    @torch.no_grad()
    def step(self, factor: float) -> None:
        """One update with every learning rate times `factor`; clears the gradients."""
        self.steps += 1
        for names in self._matrices.values():
            self._muon(names, factor)
        for name in self._others:
            self._adam(name, factor)
        for name, parameter in self._parameters.items():
            parameter.copy_(self.masters[name])
            parameter.grad = None

    def _muon(self, names: list[str], factor: float) -> None:
        gradients = torch.stack([self._gradient(name) for name in names])
        momentum = torch.stack([self.momentum[name] for name in names])
        momentum.lerp_(gradients, 1 - self.MUON_MOMENTUM)
        updates = orthogonalize(gradients.lerp(momentum, self.MUON_MOMENTUM)).float()
        rows, columns = updates.shape[1:]
        rate = self.MUON_RATE * factor
        for i, name in enumerate(names):
            self.momentum[name].copy_(momentum[i])
            self.masters[name].mul_(1 - rate * self.WEIGHT_DECAY)
            self.masters[name].sub_(updates[i], alpha=rate * max(1.0, rows / columns) ** 0.5)

    def _adam(self, name: str, factor: float) -> None:
        gradient = self._gradient(name)
        first, second = self.ADAM_BETAS
        self.momentum[name].lerp_(gradient, 1 - first)
        self.variance[name].lerp_(gradient.square(), 1 - second)
        mean = self.momentum[name] / (1 - first**self.steps)
        scale = (self.variance[name] / (1 - second**self.steps)).sqrt_().add_(1e-8)
        self.masters[name].addcdiv_(mean, scale, value=-self.ADAM_RATE * factor)

    def _gradient(self, name: str) -> Tensor:
        gradient = self._parameters[name].grad
        return torch.zeros_like(self.masters[name]) if gradient is None else gradient.float()

    def state(self) -> dict[str, object]:
        """Everything that a resumed run needs."""
        return {
            "masters": self.masters,
            "momentum": self.momentum,
            "variance": self.variance,
            "steps": self.steps,
        }

    def restore(self, state: dict[str, object]) -> None:
        """Continue from what `state` returned, the model's weights included."""
        for attribute, value in state.items():
            setattr(self, attribute, value)
        with torch.no_grad():
            for name, parameter in self._parameters.items():
                parameter.copy_(self.masters[name])
