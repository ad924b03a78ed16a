"""Delivery of channel messages to the agents of the SDK."""

from __future__ import annotations

import asyncio
import functools
import logging
import threading
from typing import Any, Callable, Mapping

import openintent
from openintent import agents as sdk
from openintent.exceptions import OpenIntentError
from openintent.streaming import SSEEvent, SSEStream

from .channels import Channels, Message

logger = logging.getLogger("koine_openintent")

#: Events of an agent that wait for its handlers. A full queue stops reading the stream.
MAX_WAITING = 1000

_installed = False


def install() -> None:
    """Adds channel messages to the SDK. Call it before agents are declared: the
    decorators copy what they find. Calling it again has no effect."""
    global _installed
    if _installed:
        return
    _installed = True
    for decorator in ("Agent", "Coordinator"):
        patched = _with_channels(getattr(sdk, decorator))
        setattr(sdk, decorator, patched)
        setattr(openintent, decorator, patched)
    sdk.BaseAgent.channels = property(_channels_of)
    sdk.BaseAgent._subscribe = _subscribe
    sdk.BaseAgent.stop = _stop_streams(sdk.BaseAgent.stop)


def _channels_of(agent: Any) -> Channels:
    found = agent.__dict__.get("_koine_channels")
    if found is None:
        found = agent.__dict__["_koine_channels"] = Channels(agent)
    return found


def _with_channels(decorator: Callable) -> Callable:
    """Returns the class decorator with the property channels, which it leaves out."""

    @functools.wraps(decorator)
    def declare(*args: Any, **options: Any) -> Callable[[type], type]:
        decorate = decorator(*args, **options)

        def apply(cls: type) -> type:
            if not hasattr(cls, "channels"):
                cls.channels = property(_channels_of)
            return decorate(cls)

        return apply

    return declare


def _stop_streams(stop: Callable) -> Callable:
    @functools.wraps(stop)
    def stop_all(agent: Any) -> None:
        stop(agent)
        delivery = agent.__dict__.get("_koine_delivery")
        if delivery is not None:
            delivery.stop()

    return stop_all


async def _subscribe(agent: Any) -> None:
    """Opens the event stream of the agent. It replaces BaseAgent._subscribe, which
    blocks the event loop while it waits for an event: a handler that waits for a
    response would never get it."""
    delivery = agent.__dict__["_koine_delivery"] = _Delivery(agent)
    delivery.start()


class _Delivery:
    """Passes the events and the messages of an agent to its handlers.

    A thread reads each of the two streams. Events of intents and messages of channels have a queue
    each and are handled in order, so a handler that waits for a response does not hold
    up the answers that this agent owes to others.
    """

    def __init__(self, agent: Any):
        self._agent = agent
        self._loop = asyncio.get_running_loop()
        self._events: asyncio.Queue[SSEEvent] = asyncio.Queue()
        self._messages: asyncio.Queue[Message] = asyncio.Queue()
        self._room = threading.BoundedSemaphore(MAX_WAITING)
        self._names: dict[str, str] = {}  # of channels, by id
        self._workflows: dict[str, list[tuple[Any, Callable]]] = {}  # by intent
        config = agent._config
        url = f"{config.base_url}/api/v1/agents/{agent.agent_id}/subscribe"
        self._streams = [
            SSEStream(
                of,
                {"X-API-Key": config.api_key, "X-Agent-ID": agent.agent_id},
                reconnect_delay=config.reconnect_delay,
                max_reconnects=config.max_reconnects,
            )
            for of in (url, url + "?events=messages")
        ]
        self._tasks: list[asyncio.Task] = []

    def start(self) -> None:
        self._tasks = [
            asyncio.create_task(self._handle_all(self._events, self._agent._handle_event)),
            asyncio.create_task(self._handle_all(self._messages, self._handle_message)),
        ]
        for stream in self._streams:
            threading.Thread(
                target=self._read, args=(stream,), name="koine_openintent", daemon=True
            ).start()

    def stop(self) -> None:
        for stream in self._streams:
            stream._running = False
        self._loop.call_soon_threadsafe(self._cancel)

    def _cancel(self) -> None:
        for task in self._tasks:
            task.cancel()

    def _read(self, stream: SSEStream) -> None:
        """Reads a stream until the agent stops. It runs in a thread of its own."""
        for event in stream:
            if not self._agent._running:
                return
            self._room.acquire()
            if event.type == "channel_message":
                item, queue = Message(event.data), self._messages
            elif event.type in _HANDLED:
                item, queue = event, self._events
            else:
                self._room.release()
                continue
            try:
                self._loop.call_soon_threadsafe(queue.put_nowait, item)
            except RuntimeError:  # the loop is closed
                return

    async def _handle_all(self, queue: asyncio.Queue, handle: Callable) -> None:
        while True:
            item = await queue.get()
            try:
                await handle(item)
            except Exception:
                logger.exception("agent %s: a handler failed", self._agent.agent_id)
            finally:
                self._room.release()

    async def _handle_message(self, message: Message) -> None:
        """Calls the handlers of the message's channel, and sends what the first one
        returns as the response to a request."""
        agent = self._agent
        if message.sender == agent.agent_id:
            return
        handlers = [
            (getattr(h, "_openintent_channel", None), h)
            for h in agent._handlers["message"]
        ]
        handlers += await self._workflow_handlers(message.get("intent_id"))
        named = any(wanted for wanted, _ in handlers)
        name = await self._name_of(message.channel_id) if named else ""
        answered = message.message_type != "request"
        for wanted, handler in handlers:
            if wanted not in (None, name):
                continue
            result = await agent._call_handler(handler, message)
            if answered or result is None:
                continue
            answered = True
            await self._reply(message, result)

    async def _workflow_handlers(
        self, intent_id: Any
    ) -> list[tuple[Any, Callable]]:
        """Returns the channel and the method of each entry of on_message that the workflow
        file of the intent has for the agent (koine intent apply)."""
        if not intent_id:
            return []
        if intent_id not in self._workflows:
            agent = self._agent
            intent = await agent.async_client.get_intent(intent_id)
            agents = (intent.constraints.get("workflow") or {}).get("agents") or {}
            found = []
            for entry in (agents.get(agent.agent_id) or {}).get("on_message") or []:
                handler = getattr(agent, entry["handler"], None)
                if handler is None:
                    logger.warning(
                        "agent %s has no method %s, which the workflow of intent %s names",
                        agent.agent_id, entry["handler"], intent_id,
                    )
                    continue
                found.append((entry.get("channel"), handler))
            self._workflows[intent_id] = found
        return self._workflows[intent_id]

    async def _reply(self, message: Message, result: Any) -> None:
        payload = result if isinstance(result, Mapping) else {"result": result}
        try:
            await self._agent.async_client.reply_to(
                message.channel_id, message.id, self._agent.agent_id, dict(payload)
            )
        except OpenIntentError as err:  # expired meanwhile, or the channel is closed
            logger.warning("message %s is not answered: %s", message.id, err)

    async def _name_of(self, channel_id: str) -> str:
        if channel_id not in self._names:
            channel = await self._agent.async_client.get_channel(channel_id)
            self._names[channel_id] = channel["name"]
        return self._names[channel_id]


#: The events that BaseAgent._handle_event handles; it fails on others.
_HANDLED = {
    "AGENT_ASSIGNED",
    "STATUS_CHANGED",
    "LEASE_RELEASED",
    "STATE_CHANGED",
    "INTENT_COMPLETED",
}
