"""Prints the numbers of the messages in an intent's stream, as the SDK's reader tells them.

usage: stream.py URL KEY INTENT

It ends with the message whose number is 0. Of the SDK's defaults it changes the wait
before it connects again alone, which is 5 s.
"""

import sys

from openintent.streaming import SSEStream

url, key, intent = sys.argv[1:4]
stream = SSEStream(
    f"{url}/api/v1/intents/{intent}/subscribe",
    {"X-API-Key": key, "X-Agent-ID": "bob"},
    reconnect_delay=0.2,
    max_reconnects=100,
)
for event in stream:
    if event.type != "channel_message":
        sys.exit(f"{event.type}: {event.data}")
    number = event.data["payload"]["n"]
    if number == 0:
        stream.stop()
        break
    print(number, flush=True)
