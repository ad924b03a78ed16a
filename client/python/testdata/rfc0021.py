# The two programs of RFC-0021, "Agent Decorators" and "Channel Proxy on Agents", word for
# word, and around them what runs them: rfc0021.py BASE-URL KEY.
import asyncio
import logging
import sys

logger = logging.getLogger("rfc0021")

# --- Agent Decorators
from openintent.agents import Agent, on_message, on_assignment

@Agent("data-agent-01")
class DataAgent:
    @on_assignment
    async def handle(self, intent):
        # Normal work...
        pass

    @on_message(channel="data-clarification")
    async def handle_clarification(self, message):
        """Called when a message arrives on the named channel."""
        if message.message_type == "request":
            # Return value is auto-sent as a response
            return {"answer": "v2.3", "confidence": 0.95}

    @on_message()  # No channel filter — receives all messages
    async def handle_any(self, message):
        """Called for messages on any channel."""
        logger.info(f"Got message from {message.sender}: {message.payload}")

# --- Channel Proxy on Agents
@Agent("research-agent-01")
class ResearchAgent:
    @on_assignment
    async def handle(self, intent):
        # Open/get a channel (created implicitly if it doesn't exist)
        channel = await self.channels.open("data-clarification", intent_id=intent.id)

        # Ask a question and wait for the answer
        response = await channel.ask("data-agent-01", {
            "question": "What schema version?"
        }, timeout=30)

        schema_version = response.payload["answer"]

        # Notify everyone
        await channel.broadcast({"status": "starting analysis", "schema": schema_version})

        # Fire-and-forget
        await channel.notify("logger-agent", {"phase": "research", "started": True})
# ---


@Agent("log-agent-01")
class LogAgent:
    """Its handler is named by the workflow of the intent, not by a decorator."""

    seen: list = []

    async def log_progress(self, message):
        self.seen.append(message.payload)


async def main(url: str, key: str) -> None:
    from koine_openintent import MessageTimeoutError
    from openintent import AsyncOpenIntentClient

    lead = AsyncOpenIntentClient(base_url=url, api_key=key, agent_id="lead")
    intent = await lead.create_intent(title="Research Q1 Financials", description="")
    heard: list = []
    logger.setLevel(logging.INFO)
    logger.addFilter(lambda record: heard.append(record.getMessage()) or False)
    agents = [DataAgent(url, key), ResearchAgent(url, key), LogAgent(url, key)]
    for agent in agents:
        agent._running = True
        await agent._subscribe()
    deadline = asyncio.get_running_loop().time() + 40
    # A stream has what happens from its response on.
    streams = [s for agent in agents for s in agent._koine_delivery._streams]
    while any(s._response is None for s in streams):
        if asyncio.get_running_loop().time() > deadline:
            sys.exit("the streams of the agents are not open")
        await asyncio.sleep(0.05)

    async def messages() -> list:
        asking = agents[1].async_client  # others do not see what is addressed
        for channel in await asking.list_channels(intent.id):
            return await asking.list_messages(channel["id"])
        return []

    await lead.assign_agent(intent.id, "research-agent-01")
    while len(found := await messages()) < 4:
        if asyncio.get_running_loop().time() > deadline:
            sys.exit(f"the conversation has {len(found)} messages: {found}")
        await asyncio.sleep(0.1)
    question, answer, broadcast, notice = found
    assert question["message_type"] == "request" and question["to"] == "data-agent-01", question
    assert answer["payload"] == {"answer": "v2.3", "confidence": 0.95}, answer
    assert answer["message_type"] == "response" and answer["sender"] == "data-agent-01", answer
    assert broadcast["payload"] == {"status": "starting analysis", "schema": "v2.3"}, broadcast
    assert notice["to"] == "logger-agent" and notice["payload"]["started"] is True, notice

    # DataAgent hears the broadcast, because every agent with access to the intent takes part.
    broadcast_heard = f"Got message from research-agent-01: {broadcast['payload']}"
    while broadcast_heard not in heard:
        if asyncio.get_running_loop().time() > deadline:
            sys.exit(f"handle_any was called for {heard}")
        await asyncio.sleep(0.05)

    channel = await agents[1].channels.open("data-clarification", intent_id=intent.id)
    assert [r.payload["answer"] for r in await channel.ask_all("data-agent-01", {}, timeout=2)] == ["v2.3"]
    try:
        await channel.ask("logger-agent", {}, timeout=0.5)
        sys.exit("a request that nobody answers has a response")
    except MessageTimeoutError as err:
        assert err.request.to == "logger-agent"

    workflow = {"agents": {"log-agent-01": {"on_message": [{"channel": "progress", "handler": "log_progress"}]}}}
    other = await lead.create_intent(title="Log", description="", constraints={"workflow": workflow})
    progress = await lead.create_channel(other.id, "progress")
    await lead.send_message(progress["id"], "lead", payload={"done": 1})
    while LogAgent.seen != [{"done": 1}]:
        if asyncio.get_running_loop().time() > deadline:
            sys.exit(f"the handler of the workflow saw {LogAgent.seen}")
        await asyncio.sleep(0.05)
    for agent in agents:
        agent.stop()
    print("ok")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
