"""Lists what the inspection of a model can find, why each finding matters, and what to do about it."""

from dataclasses import dataclass
from typing import Literal

Weight = Literal["note", "advice", "warning"]


@dataclass(frozen=True, slots=True)
class Explanation:
    """A kind of finding: its title, why it matters and the fix. The findings of a model are stored with the model."""

    id: str
    weight: Weight
    title: str
    why: str
    fix: str


RANDOM_DRAWS = "random_draws"

_ALL = (
    Explanation(
        "training_mode",
        "warning",
        "Operators in training mode",
        "Dropout then drops values at random and BatchNormalization uses the batch's own statistics: outputs differ "
        "from run to run and from the trained model.",
        "Call model.eval() and export again, with training off in the exporter.",
    ),
    Explanation(
        RANDOM_DRAWS,
        "note",
        "Random numbers without a seed",
        "Every process draws others, so that no two runs have the same outputs, and none can be said to be wrong.",
        "Give the operators a seed, or feed the noise as an input.",
    ),
    Explanation(
        "fixed_batch_one",
        "advice",
        "The batch is frozen at 1",
        "No other batch size can be measured, and a server cannot join requests.",
        "Export with a dynamic first dimension (dynamic_axes or dynamic_shapes).",
    ),
    Explanation(
        "no_dynamic_axis",
        "note",
        "No dimension is dynamic",
        "Fixed shapes let a runtime plan memory ahead, but every other shape needs another export.",
        "Export with dynamic axes when batch or sequence should vary.",
    ),
    Explanation(
        "needs_newer_runtime",
        "note",
        "Older runtimes cannot load it",
        "The operator set or the IR version is newer than the oldest release measured here loads.",
        "Export with an older opset_version, or plan for the release named.",
    ),
    Explanation(
        "unused_opset",
        "advice",
        "Operator sets are named that no node uses",
        "A runtime refuses a model for an operator set that is too new, even when no node uses it.",
        "Remove the unused opset_import entries; a variant made here leaves them out.",
    ),
    Explanation(
        "custom_domain",
        "warning",
        "Operators outside ONNX and ONNX Runtime",
        "No build of ONNX Runtime has them, and custom libraries are not loaded here: no cell of this model can run.",
        "Export with standard operators, or define them as functions inside the model.",
    ),
    Explanation(
        "subgraphs",
        "note",
        "Control flow inside the graph",
        "If, Loop and Scan run their branches as separate graphs: fusions stop at their borders and their time depends "
        "on the input.",
        "Trace the model with fixed control flow where the branch is known.",
    ),
    Explanation(
        "float64",
        "advice",
        "Double precision",
        "Few kernels are tuned for float64; it takes twice the memory, and some providers leave it to the CPU.",
        "Cast weights and inputs to float32 before exporting.",
    ),
    Explanation(
        "int64_heavy",
        "note",
        "Much computing on int64",
        "Shape arithmetic in int64 stays on the CPU, which can force copies from and to a device.",
        "Simplify the graph with fixed shapes, or fold constants before exporting.",
    ),
    Explanation(
        "initialisers_as_inputs",
        "advice",
        "Weights are listed as inputs",
        "A runtime must then expect that a caller replaces them, so it cannot fold or fuse them.",
        "Export with keep_initializers_as_inputs=False, or remove them from the graph's inputs.",
    ),
    Explanation(
        "missing_shapes",
        "note",
        "Shapes that cannot be inferred",
        "Memory cannot be planned ahead, and some providers refuse nodes of unknown shape.",
        "Run symbolic shape inference, or export with concrete shapes where they are fixed.",
    ),
    Explanation(
        "transpose_sandwich",
        "advice",
        "Transposes at the borders",
        "The model seems to have been trained in another layout (NHWC): each call pays for turning inputs and outputs.",
        "Export in NCHW, or feed the layout that the first operator wants.",
    ),
    Explanation(
        "duplicate_initialisers",
        "note",
        "The same weights stored more than once",
        "They take space in the file and in memory.",
        "Share the tensor; onnx-simplifier and ONNX Runtime's offline tools do it.",
    ),
    Explanation(
        "near_2gb",
        "warning",
        "Close to protobuf's 2 GB without external data",
        "A file past 2 GB cannot be written or read, so that even a small change can break the model.",
        "Save with external data: onnx.save_model(…, save_as_external_data=True).",
    ),
    Explanation(
        "unnamed_nodes",
        "note",
        "Nodes without a name",
        "Traces and findings can then only point to them by their outputs.",
        "Name the nodes on export, or let ONNX Runtime's tools name them.",
    ),
    Explanation(
        "s8s8_on_x86",
        "advice",
        "Signed 8-bit activations",
        "On x86 the fast kernels want unsigned activations with signed weights; with both signed many nodes stay slow.",
        "Quantise with activation type uint8 and weight type int8 for x86; both signed is right on Arm.",
    ),
    Explanation(
        "checker_complaint",
        "warning",
        "ONNX's own checker complains",
        "The model breaks a rule of the standard; runtimes differ in what they let pass.",
        "Read the complaint and export again with a current exporter.",
    ),
    Explanation(
        "not_checked",
        "note",
        "Newer than ONNX's own checker here",
        "The IR version or operator set is newer than the onnx package of this farm knows, so it was not checked.",
        "Export with an older version if a runtime refuses it.",
    ),
)

EXPLANATIONS = {explanation.id: explanation for explanation in _ALL}
