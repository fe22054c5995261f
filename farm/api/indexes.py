"""Package indexes beside the usual one, over HTTP: an admin of the farm adds and removes them."""

from django.http import HttpRequest
from ninja import Router, Status
from pydantic import Field

from farm.accounts.states import Scope
from farm.api.auth import BrowserAuth, TokenAuth, person
from farm.api.shapes import StrictSchema, username
from farm.contract.api.indexes import IndexOut
from farm.registry import services
from farm.registry.models import PackageIndex
from farm.registry.selectors import package_indexes

router = Router(tags=["account"], auth=[TokenAuth(changes=Scope.ADMIN), BrowserAuth()])


class IndexIn(StrictSchema):
    """An index, whose builds of ONNX Runtime may be measured beside those of the usual one."""

    name: str = Field(max_length=100, description="1 to 10 small letters and digits, such as nightly")
    url: str = Field(max_length=1000, description="https://HOST/PATH/ of its simple pages, without a password")


@router.get("/indexes", response=list[IndexOut])
def list_indexes(request: HttpRequest) -> list[IndexOut]:
    """Package indexes beside the usual one."""
    person(request)
    return [_shape_index(index) for index in package_indexes()]


@router.post("/indexes", response={201: IndexOut})
def add_index(request: HttpRequest, payload: IndexIn) -> Status[IndexOut]:
    """Add an index; admins of the farm may. Its builds are locked by the sha256 that they are first seen with."""
    return Status(201, _shape_index(services.add_index(by=person(request), name=payload.name, url=payload.url)))


@router.delete("/indexes/{name}", response={204: None})
def remove_index(request: HttpRequest, name: str) -> Status[None]:
    """Remove an index; admins of the farm may. What was measured of it stays."""
    services.remove_index(by=person(request), name=name)
    return Status(204, None)


def _shape_index(index: PackageIndex) -> IndexOut:
    return IndexOut(name=index.name, url=index.url, created_by=username(index.created_by), created_at=index.created_at)
