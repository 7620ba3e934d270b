from dataclasses import dataclass


@dataclass
class Book:
    title: str | None = None
    category: str | None = None
    listed: str | None = None
    price: float | str | None = None
    rating: str | None = None
    available: int | None = None
    upc: str | None = None
    url: str | None = None
