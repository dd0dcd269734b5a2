"""Reads what the scripted model server says, with each vendor's own library, and sends it back with a result.

Prints one JSON object: for each format what the library understood.
"""

import json
import os

import anthropic
import openai
from google import genai
from google.genai import types

ROOT = os.environ["MODEL_SERVER"]
SCHEMA = {"type": "object", "properties": {"command": {"type": "string"}}}


def chat():
    client = openai.OpenAI(base_url=ROOT + "/v1", api_key="key", max_retries=0)
    tools = [{"type": "function", "function": {"name": "Shell", "parameters": SCHEMA}}]
    messages = [{"role": "user", "content": "go"}]

    def ask():
        with client.chat.completions.stream(
            model="test-model", messages=messages, tools=tools, stream_options={"include_usage": True}
        ) as stream:
            thoughts = ""
            for event in stream:
                if event.type == "chunk" and event.chunk.choices:
                    thoughts += getattr(event.chunk.choices[0].delta, "reasoning_content", None) or ""
            return thoughts, stream.get_final_completion()

    thoughts, first = ask()
    message = first.choices[0].message
    calls = [[call.id, call.function.name, json.loads(call.function.arguments)] for call in message.tool_calls]
    messages.append(
        {
            "role": "assistant",
            "content": message.content,
            "tool_calls": [
                {"id": call.id, "type": "function", "function": call.function.model_dump(include={"name", "arguments"})}
                for call in message.tool_calls
            ],
        }
    )
    messages += [{"role": "tool", "tool_call_id": call.id, "content": "ok"} for call in message.tool_calls]
    usage = first.usage
    return {
        "thoughts": thoughts,
        "text": message.content,
        "calls": calls,
        "finish": first.choices[0].finish_reason,
        "usage": [
            usage.prompt_tokens,
            usage.prompt_tokens_details.cached_tokens,
            usage.completion_tokens,
            usage.completion_tokens_details.reasoning_tokens,
        ],
        "then": ask()[1].choices[0].message.content,
    }


def responses():
    client = openai.OpenAI(base_url=ROOT + "/v1", api_key="key", max_retries=0)
    tools = [{"type": "function", "name": "Shell", "parameters": SCHEMA, "strict": False}]
    items = [{"role": "user", "content": "go"}]

    def ask():
        with client.responses.stream(model="test-model", input=items, tools=tools, store=False) as stream:
            grown = {"text": "", "thoughts": ""}
            for event in stream:
                if event.type == "response.output_text.delta":
                    grown["text"] += event.delta
                elif event.type == "response.reasoning_summary_text.delta":
                    grown["thoughts"] += event.delta
            return grown, stream.get_final_response()

    grown, first = ask()
    assert grown["text"] == first.output_text
    calls = [item for item in first.output if item.type == "function_call"]
    items += [item.model_dump(exclude_none=True, exclude={"parsed_arguments"}) for item in first.output]
    items += [{"type": "function_call_output", "call_id": call.call_id, "output": "ok"} for call in calls]
    usage = first.usage
    return {
        "thoughts": grown["thoughts"],
        "text": grown["text"],
        "calls": [[call.call_id, call.name, json.loads(call.arguments)] for call in calls],
        "finish": first.status,
        "usage": [
            usage.input_tokens,
            usage.input_tokens_details.cached_tokens,
            usage.output_tokens,
            usage.output_tokens_details.reasoning_tokens,
        ],
        "then": ask()[1].output_text,
    }


def messages():
    client = anthropic.Anthropic(base_url=ROOT, api_key="key", max_retries=0)
    tools = [{"name": "Shell", "description": "Runs.", "input_schema": SCHEMA}]
    turns = [{"role": "user", "content": "go"}]

    def ask():
        with client.messages.stream(
            model="test-model", max_tokens=1000, system="be brief", messages=turns, tools=tools
        ) as stream:
            text = "".join(stream.text_stream)
            return text, stream.get_final_message()

    text, first = ask()
    calls = [block for block in first.content if block.type == "tool_use"]
    turns.append({"role": "assistant", "content": first.content})
    results = [{"type": "tool_result", "tool_use_id": call.id, "content": "ok"} for call in calls]
    turns.append({"role": "user", "content": results})
    usage = first.usage
    return {
        "thoughts": "".join(block.thinking for block in first.content if block.type == "thinking"),
        "text": text,
        "calls": [[call.id, call.name, call.input] for call in calls],
        "finish": first.stop_reason,
        "usage": [
            usage.input_tokens + usage.cache_read_input_tokens + usage.cache_creation_input_tokens,
            usage.cache_read_input_tokens,
            usage.output_tokens,
            usage.output_tokens_details.thinking_tokens,
        ],
        "then": ask()[0],
    }


def gemini():
    client = genai.Client(api_key="key", http_options=types.HttpOptions(base_url=ROOT))
    declaration = types.FunctionDeclaration(name="Shell", description="Runs.", parameters_json_schema=SCHEMA)
    config = types.GenerateContentConfig(
        tools=[types.Tool(function_declarations=[declaration])],
        automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
    )
    contents = [types.Content(role="user", parts=[types.Part(text="go")])]

    def ask():
        parts, last = [], None
        for last in client.models.generate_content_stream(model="test-model", contents=contents, config=config):
            parts += last.candidates[0].content.parts or []
        return parts, last

    def words(parts, of_thoughts):
        return "".join(part.text for part in parts if part.text and bool(part.thought) == of_thoughts)

    parts, last = ask()
    calls = [part.function_call for part in parts if part.function_call]
    contents.append(types.Content(role="model", parts=parts))
    results = [types.FunctionResponse(id=call.id, name=call.name, response={"output": "ok"}) for call in calls]
    contents.append(types.Content(role="user", parts=[types.Part(function_response=result) for result in results]))
    usage = last.usage_metadata
    return {
        "thoughts": words(parts, True),
        "text": words(parts, False),
        "calls": [[call.id, call.name, call.args] for call in calls],
        "finish": last.candidates[0].finish_reason.value,
        "usage": [
            usage.prompt_token_count,
            usage.cached_content_token_count,
            usage.candidates_token_count + usage.thoughts_token_count,
            usage.thoughts_token_count,
        ],
        "then": words(ask()[0], False),
    }


print(json.dumps([chat(), responses(), messages(), gemini()]))
