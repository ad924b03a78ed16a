"""Prints the numbers of the events in a stream, as the SDK's reader tells them.

usage: stream.py URL KEY TYPE

An event of the type has its number in the payload of the message, or in the new state. The
program ends with the number 0. Of the SDK's defaults it changes the wait before it connects
again alone, which is 5 s.
"""

import sys

from openintent.streaming import SSEStream

url, key, kind = sys.argv[1:4]
stream = SSEStream(
    url,
    {"X-API-Key": key, "X-Agent-ID": "bob"},
    reconnect_delay=0.2,
    max_reconnects=100,
)
for event in stream:
    if event.type != kind:
        sys.exit(f"{event.type}: {event.data}")
    number = event.data["payload" if kind == "channel_message" else "new_state"]["n"]
    if number == 0:
        stream.stop()
        break
    print(number, flush=True)
