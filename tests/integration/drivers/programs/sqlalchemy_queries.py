"""SQLAlchemy's asyncio engine over asyncpg: core and ORM, whose sync code runs in greenlets."""

from __future__ import annotations

import sys
from typing import Any

import support
from opentelemetry.instrumentation.asyncpg import AsyncPGInstrumentor
from opentelemetry.instrumentation.sqlalchemy import SQLAlchemyInstrumentor
from sqlalchemy import event, func, select, text
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column
from sqlalchemy.types import String, TypeDecorator

AsyncPGInstrumentor().instrument()
SLEEP = f"SELECT pg_sleep({support.SLOW_SECONDS})"


class Name(TypeDecorator[str]):
    """Takes long to make of what the database gives."""

    impl = String
    cache_ok = True

    def process_result_value(self, value: Any, dialect: Any) -> Any:
        if value == "slow":
            support.burn()
        return value


class Base(DeclarativeBase):
    pass


class Order(Base):
    __tablename__ = "orders"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(Name)


def encode(value: Any) -> str:
    support.burn()
    return str(value)


def set_codec(connection: Any, record: Any) -> None:
    connection.run_async(lambda driver: driver.set_type_codec("xml", schema="pg_catalog", encoder=encode, decoder=str))


async def main() -> None:
    engine = create_async_engine("postgresql+asyncpg://postgres@/postgres", connect_args={"host": sys.argv[1]})
    SQLAlchemyInstrumentor().instrument(engine=engine.sync_engine)

    slow_orders = select(Order).where(func.pg_sleep(support.SLOW_SECONDS).is_not(None))

    async def find_in_core() -> None:
        async with engine.connect() as connection:
            await connection.execute(text(SLEEP))  # find_in_core

    async def find_in_session() -> None:
        async with AsyncSession(engine) as session:
            await session.execute(slow_orders)  # find_in_session

    def load_sync(session: Session) -> None:
        select_sync(session)

    def select_sync(session: Session) -> None:
        session.execute(text(SLEEP))  # select_sync

    async def find_in_run_sync() -> None:
        async with AsyncSession(engine) as session:
            await session.run_sync(load_sync)

    def burn_sync(connection: Any) -> None:
        support.burn()

    async def work_in_run_sync() -> None:
        async with engine.connect() as connection:
            await connection.run_sync(burn_sync)

    async def store_sum() -> None:
        async with engine.connect() as connection:
            await connection.execute(text("SELECT CAST(:sum AS xml)"), {"sum": "slow"})

    async def read_names() -> None:
        async with AsyncSession(engine) as session:
            (await session.scalars(select(Order))).all()

    event.listen(engine.sync_engine, "connect", set_codec)
    async with engine.begin() as connection:
        await connection.run_sync(Base.metadata.drop_all)
        await connection.run_sync(Base.metadata.create_all)
    async with AsyncSession(engine) as session:
        session.add(Order(id=1, name="slow"))
        await session.commit()
    for query in (find_in_core, find_in_session, find_in_run_sync, work_in_run_sync, store_sum, read_names):
        await support.request(query)
    await engine.dispose()


if __name__ == "__main__":
    support.run(main)
