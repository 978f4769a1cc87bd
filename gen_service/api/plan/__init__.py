"""From a request to what will be generated: model, prompt, key, stages of features."""
