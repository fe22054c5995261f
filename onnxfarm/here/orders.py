"""Makes the orders of planned blocks. Variants, inputs and reference outputs that they need are made once each."""

import contextlib
import itertools
import os
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar, cast

from farm.contract.blocks import ArmOrder, BlockOrder
from farm.contract.cells import Bundle, CellSpec, FileRef, Recipe
from farm.contract.evaluation import EvaluationOrder
from farm.contract.reports import CheckReport
from farm.rules.cells import recipes, scenarios
from farm.rules.judging.block_verdicts import rounds_to_order
from farm.rules.planning.plans import PlannedBlock
from farm.rules.quality.parity import preset_for
from farm.workshop import orders
from onnxfarm.here.bundle import ImportedModel, LocalFiles

EXPECTED = "expected"
# how many variants are made at the same time, each in a process
MAX_CHILDREN = 4

Made = TypeVar("Made")


@dataclass(frozen=True)
class UserInputs:
    """The user's own inputs, expected outputs and prompts. `batch` and `sizes`: of the inputs, `sizes` by dimension."""

    inputs: FileRef | None = None
    batch: int | None = None
    sizes: Mapping[str, int] = field(default_factory=dict)
    expected: FileRef | None = None
    prompts: FileRef | None = None


@dataclass
class Preparation:
    """Makes what blocks need of a model: variants, inputs and reference outputs, each once.

    `on_activity` is called with a text about what is being made. `references`: what the outputs of each cell are
    compared with, by the cell's digest; `sizes`: the bytes of its model. `other`: the preparation of another model,
    whose arms are in the same blocks. `all`: this preparation, then the others. `is_for` says whether a cell is of this
    preparation's own model.
    """

    model: ImportedModel
    files: LocalFiles
    user_inputs: UserInputs
    folder: Path
    on_activity: Callable[[str], None]
    references: dict[str, str] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    evaluation: EvaluationOrder | None = None
    calibration: FileRef | None = None
    other: "Preparation | None" = None
    _made: dict[tuple[object, ...], object] = field(default_factory=dict)
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def make_order(self, block: PlannedBlock, *, seed: int) -> tuple[BlockOrder | None, list[CheckReport]]:
        """Make the order of a block, and a report with the reason for each arm that cannot be prepared.

        The order has the other arms, and is None if there are none. Variants are made in parallel first.
        """
        arms: list[ArmOrder] = []
        refused: list[CheckReport] = []
        for preparation in self.all:
            preparation._make_variants(block)
        for arm in block.arms:
            try:
                arm_order = self._find_preparation(arm.spec)._make_arm_order(arm.arm, arm.spec)
                arms.append(arm_order.model_copy(update={"tolerances": block.tolerances}))
            except orders.WorkshopError as error:
                refused.append(CheckReport(arm=arm.arm, reason=error.reason))
        if not arms:
            return None, refused
        order = BlockOrder(
            block=block.id,
            attempt=1,
            budget=block.budget,
            seed=seed,
            max_rounds=rounds_to_order(block),
            runner_timeout_s=block.runner_timeout_s,
            block_timeout_s=block.block_timeout_s,
            promised_s=block.max_duration_s(block.max_rounds),
            sustained_s=block.sustained_s,
            is_tracing_rounds=block.is_tracing_rounds,
            arms=tuple(arms),
        )
        return order, refused

    @property
    def all(self) -> list["Preparation"]:
        return [self, *(self.other.all if self.other else ())]

    def is_for(self, spec: CellSpec) -> bool:
        return spec.artifact_sha256 == self.model.bundle.digest

    def _find_preparation(self, spec: CellSpec) -> "Preparation":
        return next(preparation for preparation in self.all if preparation.is_for(spec))

    def _make_arm_order(self, number: int, spec: CellSpec) -> ArmOrder:
        inputs = self._provide_inputs(spec)
        reference, made_by = self._provide_reference(inputs)
        if made_by:
            self.references[spec.digest] = made_by
        bundle = self.make_variant(spec)
        self.sizes[spec.digest] = bundle.measured_bytes
        return ArmOrder(
            arm=number,
            cell=spec,
            bundle=bundle,
            source=self.model.bundle,
            inputs=inputs,
            reference=reference,
            tolerance=preset_for(spec.recipe.precision, self.model.inspection.uploaded).tolerance,
            evaluation=self.evaluation,
            prompts=self.user_inputs.prompts if scenarios.of_cell(spec).prompts_sha256 else None,
        )

    def _provide_inputs(self, spec: CellSpec) -> FileRef:
        if self.user_inputs.inputs is not None:
            return self.user_inputs.inputs
        work = spec.workload

        def make() -> FileRef:
            folder = self._make_folder("inputs")
            prepared = orders.prepare_inputs(
                self.model.folder,
                self.model.main,
                out_dir=folder,
                batch=work.batch,
                shapes=work.shapes,
                seed=work.seed,
                inputs=work.inputs,
            )
            return self.files.add(prepared.path, name="inputs.npz")

        return self._make_once(("inputs", work.model_dump_json(exclude={"concurrency", "scenario"})), make)

    def _provide_reference(self, inputs: FileRef) -> tuple[FileRef | None, str]:
        """Return the file of reference outputs, and what made them.

        They are the user's expected outputs, else those of the CPU without optimisations. Return None and an empty text
        if the model does not run without optimisations.
        """
        if self.user_inputs.expected is not None:
            return self.user_inputs.expected, EXPECTED

        def make() -> tuple[FileRef | None, str]:
            self.on_activity("making the reference outputs")
            try:
                reference = orders.make_reference(
                    self.model.folder,
                    self.model.main,
                    inputs=self.files.paths[inputs.sha256],
                    out_dir=self._make_folder("reference"),
                )
            except orders.WorkshopError as error:
                self.on_activity(f"no reference outputs: {error.reason.text}")
                return None, ""
            return self.files.add(reference.path, name="reference.npz"), reference.made_by

        return self._make_once(("reference", inputs.sha256), make)

    def _make_variants(self, block: PlannedBlock) -> None:
        """Make the missing variants of a block in parallel, each in its own sandbox, before anything is measured."""
        missing = {_make_recipe_key(arm.spec.recipe): arm.spec for arm in block.arms if self.is_for(arm.spec)}
        with ThreadPoolExecutor(max_workers=min(MAX_CHILDREN, os.cpu_count() or 1)) as pool:
            list(pool.map(self._try_to_make_variant, missing.values()))

    def _try_to_make_variant(self, spec: CellSpec) -> None:
        # `_make_once` raises the error again when the arm's order is made
        with contextlib.suppress(orders.WorkshopError):
            self.make_variant(spec)

    def make_variant(self, spec: CellSpec) -> Bundle:
        """Return the model that a cell runs; a variant is made at the first call. Raises WorkshopError."""
        if spec.recipe.is_identity:
            return self.model.bundle

        def make() -> Bundle:
            variant_name = recipes.describe_recipe(spec.recipe)
            is_program = spec.recipe.is_program
            self.on_activity("reading the model's program" if is_program else f"making the variant {variant_name}")
            variant = orders.make_variant(
                self.model.folder,
                self.model.main,
                recipe=spec.recipe,
                out_dir=self._make_folder("variant"),
                calibration=self.files.paths[self.calibration.sha256] if self.calibration else None,
            )
            return self.files.make_bundle(variant.folder, variant.main, names=variant.files)

        return self._make_once(("variant", _make_recipe_key(spec.recipe)), make)

    def _make_folder(self, name: str) -> Path:
        place = self.folder / f"{name}-{next(self._numbers)}"
        place.mkdir(parents=True)
        return place

    def _make_once(self, key: tuple[object, ...], make: Callable[[], Made]) -> Made:
        """Call `make` at the first call with this key, and return its result each time. A WorkshopError is kept too."""
        if key not in self._made:
            try:
                self._made[key] = make()
            except orders.WorkshopError as error:
                self._made[key] = error
        result = self._made[key]
        if isinstance(result, orders.WorkshopError):
            raise result
        return cast(Made, result)


def _make_recipe_key(recipe: Recipe) -> str:
    return recipe.model_dump_json()
