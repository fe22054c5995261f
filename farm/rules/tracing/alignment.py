"""Maps the nodes of a rewritten graph back to the nodes of the graph that it was made from.

The later graph is the earlier one after ONNX Runtime's optimiser, a quantiser or an opset converter rewrote it. These
keep the names of tensors between the parts that they rewrite, and derive new names from old ones. Only names and
connections are used, not what an operator does.
"""

from dataclasses import dataclass, field

from farm.base.grouping import group_by
from farm.rules.tracing.graphs import Graph, GraphNode


@dataclass(frozen=True)
class Origin:
    """The label of the earlier node that a later one stands for, and the labels of the others fused into it.

    `node` is None where none was found.
    """

    node: str | None
    covers: tuple[str, ...] = ()


@dataclass
class _State:
    """The alignment so far: which later node owns which earlier node, by label."""

    later: Graph
    earlier: Graph
    # earlier node → the later node that owns it
    owner: dict[str, str] = field(default_factory=dict)
    # later node → the first earlier node that it claimed
    primary: dict[str, str] = field(default_factory=dict)
    # later nodes of which the earlier graph names no output, so that it is not known where their work ends
    lost: set[str] = field(default_factory=set)
    # later node → an earlier node that its name or output points to, but that another node owns
    hint: dict[str, str] = field(default_factory=dict)

    def claim(self, node: GraphNode, by: GraphNode) -> None:
        self.owner[node.label] = by.label
        self.primary.setdefault(by.label, node.label)


def align(later: Graph, earlier: Graph) -> dict[str, Origin]:
    """Return the origin in `earlier` of every node of `later`, by label.

    Nodes are matched by 1. the same name, 2. an output of the same name, 3. the longest prefix of the name that names a
    node or tensor. Nodes between the matched ones are assigned to the later node that computes them. An inserted node
    gets the origin of the one node that reads its output, or else the earlier node that its name or output points
    to, or else the origin of a node that it reads from. A node inside control flow is matched by its label, or else
    gets the origin of the node around it.
    """
    later = later.restore_converted()
    state = _State(later=later, earlier=earlier)
    for node in later.main_nodes:
        same = earlier.by_name.get(node.name) if node.name in later.by_name else None
        if same is not None:
            state.claim(same, node)
    _claim_same_tensors(state)
    _claim_by_prefix(state)
    _absorb_after_lost_ends(state)
    _absorb_before_seeds(state)
    origins = _collect_origins(state)
    _assign_inserted(state, origins)
    _assign_nested(state, origins)
    return origins


def _claim_same_tensors(state: _State) -> None:
    """Claim the earlier nodes that compute a tensor with the name of a node's output; those with an owner are hints."""
    for node in state.later.main_nodes:
        makers = [state.earlier.producer[name] for name in node.outputs if name in state.earlier.producer]
        if not makers:
            state.lost.add(node.label)
        for maker in makers:
            if maker.label not in state.owner:
                state.claim(maker, node)
            elif state.owner[maker.label] != node.label:
                state.hint[node.label] = maker.label


def _claim_by_prefix(state: _State) -> None:
    """Claim the earlier node whose name is the longest prefix of a node's name, for nodes without a claim or hint.

    Where that earlier node has an owner, it is a hint, unless the owner only copies this node's output.
    """
    for node in state.later.main_nodes:
        if node.label in state.primary or node.label in state.hint:
            continue
        earlier = state.earlier.find_by_prefix(node.name)
        if earlier is None:
            continue
        if earlier.label in state.owner and not _only_hands_on(state, earlier, node):
            state.hint[node.label] = earlier.label
            continue
        if earlier.label in state.owner:
            copy = state.owner[earlier.label]
            state.hint[copy] = earlier.label
            state.primary.pop(copy, None)
        state.claim(earlier, node)
        _claim_same_kind_before(state, earlier, node)


def _only_hands_on(state: _State, found: GraphNode, node: GraphNode) -> bool:
    """Whether the owner of `found`, which claimed it by a tensor's name, only copies an output of `node`."""
    owner = state.owner[found.label]
    is_read = any(reader.label == owner for name in node.outputs for reader in state.later.consumers.get(name, ()))
    return is_read and node.label in state.lost and _is_weak(state, found, owner)


def _claim_same_kind_before(state: _State, seed: GraphNode, node: GraphNode) -> None:
    """Claim the nodes before the seed, back to one of `node`'s operator type, which `node` was fused with."""
    at, between = seed, []
    while at.op_type != node.op_type:
        makers = [state.earlier.producer[name] for name in at.inputs if name in state.earlier.producer]
        if len(makers) != 1 or makers[0].label in state.owner:
            return
        at = makers[0]
        if any(name in state.later.known_tensors for name in at.outputs):
            return
        between.append(at)
    for passed in between:
        state.owner[passed.label] = node.label


def _absorb_after_lost_ends(state: _State) -> None:
    """Assign the nodes after one in `state.lost`, up to the next known tensor, to it: they were fused into it."""
    position = {node.label: index for index, node in enumerate(state.later.main_nodes)}
    open_ends = {label for label, owner in state.owner.items() if owner in state.lost}
    for node in state.earlier.main_nodes:
        owner = state.owner.get(node.label)
        if owner is not None and not _is_weak(state, node, owner):
            continue
        if owner is None and any(name in state.later.known_tensors for name in node.outputs):
            continue
        makers = [state.earlier.producer[name].label for name in node.inputs if name in state.earlier.producer]
        lost_before = [state.owner[label] for label in makers if label in open_ends]
        if not lost_before:
            continue
        if owner is not None:
            # the former owner only passes this tensor on and does no work
            state.hint[owner] = node.label
            state.primary.pop(owner, None)
        else:
            open_ends.add(node.label)
        state.owner[node.label] = max(lost_before, key=lambda label: position[label])


def _is_weak(state: _State, node: GraphNode, owner: str) -> bool:
    """Whether a node was claimed only by a tensor's name, by a node of another type that claimed nothing else."""
    claimer = state.later.by_label[owner]
    is_only_this = state.primary.get(owner) == node.label and owner not in state.lost
    return is_only_this and claimer.name != node.name and claimer.op_type != node.op_type


def _absorb_before_seeds(state: _State) -> None:
    """Assign the nodes before a claimed one, back to tensors that still exist, to its owner: they were fused."""
    claimed_by = group_by(state.owner, state.owner.__getitem__)
    for node in state.later.main_nodes:
        todo = list(claimed_by.get(node.label, ()))
        while todo:
            for name in state.earlier.by_label[todo.pop()].inputs:
                maker = state.earlier.producer.get(name)
                if maker is None or name in state.later.known_tensors or maker.label in state.owner:
                    continue
                state.owner[maker.label] = node.label
                todo.append(maker.label)


def _collect_origins(state: _State) -> dict[str, Origin]:
    owned = (node for node in state.earlier.main_nodes if node.label in state.owner)
    covered = group_by(owned, lambda node: state.owner[node.label])
    origins = {}
    for node in state.later.main_nodes:
        parts = covered.get(node.label, [])
        main = _choose_main_part(state, node, parts)
        origins[node.label] = Origin(node=main, covers=tuple(part.label for part in parts if part.label != main))
    return origins


def _choose_main_part(state: _State, node: GraphNode, parts: list[GraphNode]) -> str | None:
    """Return the only part of the executed operator type, or else the node that was claimed first."""
    primary = state.primary.get(node.label)
    of_its_kind = [part.label for part in parts if part.op_type == node.op_type]
    if primary is None or len(of_its_kind) != 1:
        return primary
    return of_its_kind[0]


def _assign_inserted(state: _State, origins: dict[str, Origin]) -> None:
    """Give an inserted node the origin of the one node that reads it, else its hint, else that of the node it reads."""
    for node in reversed(state.later.main_nodes):
        if origins[node.label].node is not None:
            continue
        readers = [reader for name in node.outputs for reader in state.later.consumers.get(name, ())]
        read_by = {origins[reader.label].node for reader in readers}
        has_known_output = any(name in state.earlier.producer for name in node.outputs)
        if len(read_by) == 1 and not has_known_output:
            origins[node.label] = Origin(node=read_by.pop())
        else:
            origins[node.label] = Origin(node=state.hint.get(node.label))
    for node in state.later.main_nodes:
        if origins[node.label].node is None:
            makers = [state.later.producer[name].label for name in node.inputs if name in state.later.producer]
            origins[node.label] = Origin(node=next((origins[m].node for m in makers if origins[m].node), None))


def _assign_nested(state: _State, origins: dict[str, Origin]) -> None:
    """Map nodes inside control flow to the earlier node of the same label, or else to the origin of the node around."""
    for node in state.later.nodes:
        if not node.path:
            continue
        if node.label in state.earlier.by_label:
            origins[node.label] = Origin(node=node.label)
        else:
            origins[node.label] = Origin(node=origins.get(node.path[-1], Origin(node=None)).node)
