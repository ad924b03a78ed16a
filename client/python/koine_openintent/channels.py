"""Channels of an intent, and the messages in them."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta, timezone
from typing import Any, Iterator, Mapping, Optional

from openintent.exceptions import ConflictError

#: Seconds between two looks for the responses to a request.
POLL_INTERVAL = 0.2


class MessageTimeoutError(TimeoutError):
    """No response to a request arrived in time (RFC-0021, section 3.1).

    request is the message that was sent.
    """

    def __init__(self, request: "Message", timeout: float):
        super().__init__(
            f"no response to message {request.id} from {request.to} within {timeout:g} s"
        )
        self.request = request


class Message(Mapping[str, Any]):
    """A message as the server sends it: its members are attributes and items."""

    def __init__(self, members: Mapping[str, Any]):
        self._members = dict(members)

    def __getattr__(self, name: str) -> Any:
        try:
            return self.__dict__["_members"][name]
        except KeyError:
            raise AttributeError(f"a message has no member {name!r}") from None

    def __getitem__(self, name: str) -> Any:
        return self._members[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._members)

    def __len__(self) -> int:
        return len(self._members)

    def __repr__(self) -> str:
        return f"Message({self._members!r})"


class Channels:
    """The channels of the intents that an agent works on (self.channels)."""

    def __init__(self, agent: Any):
        self._agent = agent

    async def open(
        self,
        name: str,
        intent_id: str,
        members: Optional[list[str]] = None,
        member_policy: str = "intent",
        options: Optional[dict[str, Any]] = None,
    ) -> "Channel":
        """Returns the channel of an intent with a name, and creates it if there is none.

        The other arguments apply to a new channel. Two agents that open a name at the
        same time get the same channel.
        """
        client = self._agent.async_client
        found = await self._find(intent_id, name)
        if found is None:
            try:
                found = await client.create_channel(
                    intent_id, name, members, member_policy, options=options
                )
            except ConflictError:
                found = await self._find(intent_id, name)
                if found is None:
                    raise
        return Channel(self._agent, found["id"], name, intent_id)

    async def _find(self, intent_id: str, name: str) -> Optional[dict[str, Any]]:
        for channel in await self._agent.async_client.list_channels(intent_id):
            if channel.get("name") == name:
                return channel
        return None


class Channel:
    """One channel, as its agent uses it. Open it with Channels.open."""

    def __init__(self, agent: Any, channel_id: str, name: str, intent_id: str):
        self._agent = agent
        self.channel_id = channel_id
        self.name = name
        self.intent_id = intent_id

    async def ask(
        self, to: str, payload: dict[str, Any], timeout: float = 30
    ) -> Message:
        """Sends a request and returns the first response to it.

        The request expires when the timeout, in seconds, ends. Raises
        MessageTimeoutError if no response arrives by then.
        """
        request = await self._request(to, payload, timeout)
        async for responses in self._responses(request, timeout):
            if responses:
                return responses[0]
        raise MessageTimeoutError(request, timeout)

    async def ask_all(
        self, to: str, payload: dict[str, Any], timeout: float = 30
    ) -> list[Message]:
        """Sends a request and returns all responses that arrive within the timeout, in
        seconds. The list may be empty."""
        request = await self._request(to, payload, timeout)
        collected: list[Message] = []
        async for responses in self._responses(request, timeout):
            collected = responses
        return collected

    async def notify(self, to: str, payload: dict[str, Any]) -> Message:
        """Sends a message to one agent, or to a role as role:NAME."""
        return await self._send(to=to, message_type="notify", payload=payload)

    async def broadcast(self, payload: dict[str, Any]) -> Message:
        """Sends a message to everybody in the channel."""
        return await self._send(to="*", message_type="broadcast", payload=payload)

    async def reply(self, message: Mapping[str, Any], payload: dict[str, Any]) -> Message:
        """Sends the response to a request."""
        return Message(
            await self._agent.async_client.reply_to(
                self.channel_id, message["id"], self._agent.agent_id, payload
            )
        )

    async def _request(
        self, to: str, payload: dict[str, Any], timeout: float
    ) -> Message:
        expires = datetime.now(timezone.utc) + timedelta(seconds=timeout)
        return await self._send(
            to=to,
            message_type="request",
            payload=payload,
            expires_at=expires.isoformat(timespec="milliseconds"),
        )

    async def _send(self, **body: Any) -> Message:
        return Message(
            await self._agent.async_client.send_message(
                self.channel_id, self._agent.agent_id, **body
            )
        )

    async def _responses(self, request: Message, timeout: float):
        """Yields the responses so far, in order, again and again until the timeout."""
        loop = asyncio.get_running_loop()
        end = loop.time() + timeout
        while True:
            messages = await self._agent.async_client.list_messages(
                self.channel_id, since=request.id
            )
            yield [
                Message(m)
                for m in messages
                if m.get("correlation_id") == request.id
                and m.get("message_type") == "response"
            ]
            left = end - loop.time()
            if left <= 0:
                return
            await asyncio.sleep(min(POLL_INTERVAL, left))
