"""Eager tasks (3.12+): one in its first step takes the tape, on top of the task that made it."""

import asyncio

from recording import PREFIX, finish, settle, take


def name_current(name: str) -> None:
    task = asyncio.current_task()
    assert task
    task.set_name(name)


async def leaf(name: str) -> None:
    await asyncio.sleep(0)  # 3.13.0 names an eager task after its first step
    name_current(name)
    await asyncio.get_running_loop().create_future()


async def eager() -> None:
    name_current("eager")  # create_task() gives a name only after the first step
    finish(take())


async def maker() -> None:
    await settle()
    makes()


def makes() -> asyncio.Task[None]:
    return asyncio.create_task(eager())


async def by_gather() -> None:
    await asyncio.gather(leaf("left"), leaf("right"))


async def main() -> None:
    asyncio.get_running_loop().set_task_factory(asyncio.eager_task_factory)  # type: ignore[attr-defined]
    async with asyncio.TaskGroup() as group:
        group.create_task(by_gather(), name="by_gather")
        group.create_task(maker(), name="maker")


ABOVE = f"{PREFIX}main > __aexit__ > "
EXPECTED = {
    "left": [ABOVE + "by_gather > leaf"],
    "right": [ABOVE + "by_gather > leaf"],
    "eager": [ABOVE + "maker > makes > create_task > factory > eager"],
}


def run() -> None:
    asyncio.run(main())


if __name__ == "__main__":
    run()
