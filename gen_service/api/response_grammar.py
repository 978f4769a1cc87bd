"""From a request's `response_format` to the grammar that its completions keep to."""

import asyncio

from ttmark.gen_service.api.backend import ServedModel
from ttmark.gen_service.decoding.grammar import Grammar
from ttmark.gen_service.decoding.json_grammar import ANY_OBJECT, SchemaRefused, TokenizerUnsuitable
from ttmark.shared.http.service_errors import BadRequest, UnsupportedFeature
from ttmark.shared.schemas.chat import ChatRequest, JsonObjectFormat, JsonSchemaFormat

COMPILE_SECONDS = 5.0


async def response_grammar(body: ChatRequest, model: ServedModel) -> Grammar | None:
    """The grammar of a request; None where it asks for text. Compiled in a thread of the model's own.

    Raises:
        BadRequest: the schema cannot be kept to, or `ignore_eos` contradicts it.
        UnsupportedFeature: the model cannot be held to a grammar.
    """
    match body.response_format:
        case JsonObjectFormat():
            schema = ANY_OBJECT
        case JsonSchemaFormat(json_schema=named):
            schema = named.json_schema
        case _:
            return None
    if body.ignore_eos:
        raise BadRequest("ignore_eos: not available together with response_format.", param="ignore_eos")
    compiled = asyncio.wrap_future(model.grammars.submit(schema))
    try:
        return await asyncio.wait_for(compiled, COMPILE_SECONDS)
    except SchemaRefused as error:
        raise BadRequest(f"response_format: {error}.", param="response_format") from error
    except TimeoutError:
        message = f"response_format: the schema could not be prepared within {COMPILE_SECONDS:.0f} s."
        raise BadRequest(message, param="response_format") from None
    except TokenizerUnsuitable as error:
        raise UnsupportedFeature(f"response_format: {error}.", param="response_format") from error
