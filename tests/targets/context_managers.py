"""async with, suspended on the way in, in its body and on the way out; also several managers over several lines."""

import asyncio
from types import TracebackType

from targets.support import name_me


async def enter() -> None:
    await asyncio.sleep(60)


async def body() -> None:
    await asyncio.sleep(60)


async def leave() -> None:
    await asyncio.sleep(60)


class Manager:
    def __init__(self, stops_at: str) -> None:
        self.stops_at = stops_at

    async def __aenter__(self) -> None:
        if self.stops_at == "enter":
            await enter()

    async def __aexit__(self, *error: "type[BaseException] | BaseException | TracebackType | None") -> None:
        if self.stops_at == "exit":
            await leave()


async def work(stops_at: str) -> None:
    name_me(stops_at)
    async with Manager(stops_at):
        if stops_at == "body":
            await body()


async def work_in_two(stops_at: str) -> None:
    name_me(f"second {stops_at}")
    async with (
        Manager("never"),
        Manager(stops_at),
    ):
        pass


async def main() -> None:
    await asyncio.gather(work("enter"), work("body"), work("exit"), work_in_two("enter"), work_in_two("exit"))
