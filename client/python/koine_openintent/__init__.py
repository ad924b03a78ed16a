"""Channel messages for agents of the OpenIntent SDK (RFC-0021).

The published SDK (openintent 0.17.0) has the decorator on_message and the property
channels, but never calls the one and lacks the other on classes decorated with Agent.
install() adds both to the loaded SDK; its files stay as they are:

    import koine_openintent

    koine_openintent.install()

    from openintent.agents import Agent, on_message

    @Agent("data-agent-01")
    class DataAgent:
        @on_message(channel="data-clarification")
        async def answer(self, message):
            return {"answer": "v2.3"}  # sent as the response to a request

    DataAgent.run("http://127.0.0.1:8080", api_key="…")

A program that does not know this package runs unchanged with

    python -m koine_openintent program.py
"""

from .agents import install
from .channels import Channel, Channels, Message, MessageTimeoutError

__all__ = ["Channel", "Channels", "Message", "MessageTimeoutError", "install"]
