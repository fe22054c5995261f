"""Rounds whose run has ended: judged by the rule, confirmed in a fresh block, and turned into alerts."""

import logging
from collections.abc import Callable
from dataclasses import asdict, replace

from django.db import transaction
from django.utils import timezone

from farm.alerts.models import WatchRound
from farm.alerts.services import measurements, openings, resolutions, series
from farm.alerts.services.measurements import CannotMeasure
from farm.alerts.states import RoundOutcome, RoundState
from farm.contract.document import Document
from farm.fleet.states import NodeHealth
from farm.rules.changes import confirmations, watch_rounds
from farm.rules.changes.watch_rounds import Finding, Judgement
from farm.rules.wording.numbers import counted
from farm.runs import selectors as runs
from farm.runs.models import Run
from farm.runs.states import RunState

log = logging.getLogger(__name__)
MOST_TRIES = 200


def advance_rounds() -> int:
    """Takes every open round one step further where it can; gives how many moved."""
    return _each(RoundState.WAITING, _start) + _each(RoundState.MEASURING, _judge) + _each(RoundState.CONFIRMING, _end)


def _each(state: RoundState, step: Callable[[WatchRound], bool]) -> int:
    related = ("watch__team", "watch__created_by", "version__model", "run", "confirming")
    moved = 0
    for one in WatchRound.objects.filter(state=state).select_related(*related).order_by("pk"):
        try:
            moved += step(one)
        except Exception:
            # one round that breaks keeps no other from its step
            log.exception("round %s broke in the state %s", one.pk, state)
    return moved


def _start(one: WatchRound) -> bool:
    try:
        return measurements.start_round(one)
    except CannotMeasure as problem:
        tries = one.tries + 1
        if problem.passes and tries < MOST_TRIES:
            WatchRound.objects.filter(pk=one.pk).update(tries=tries, sentence=str(problem)[:2000])
            return False
        return _settle(one, Judgement(infra=(str(problem),)), findings=[], document=None)


def _judge(one: WatchRound) -> bool:
    """measuring → judged, or → confirming; more rounds first where something stayed undecided."""
    if one.run is None or one.run.state != RunState.FINISHED:
        return one.run is None and _settle(one, _lost("The run was removed."), findings=[], document=None)
    document, judgement = judged(one, one.run)
    if judgement.undecided and measurements.extend(one):
        return True
    noisy = [finding for finding in judgement.findings if finding.is_noisy]
    if noisy:
        try:
            return measurements.start_confirmation(one, noisy, kept=[asdict(finding) for finding in judgement.findings])
        except CannotMeasure as problem:
            judgement = _with_infra(judgement, f"It could not be confirmed: {problem}")
            findings = [finding for finding in judgement.findings if not finding.is_noisy]
            return _settle(one, judgement, findings=findings, document=document)
    return _settle(one, judgement, findings=list(judgement.findings), document=document)


def _end(one: WatchRound) -> bool:
    """confirming → judged."""
    if one.run is None or one.confirming is None:
        return _settle(one, _lost("A run of the round was removed."), findings=[], document=None)
    if one.confirming.state != RunState.FINISHED:
        return False
    document, judgement = judged(one, one.run)
    findings = [Finding(**kept) for kept in one.findings]
    shown, again = judged(one, one.confirming)
    document = confirmations.explained_by(document, shown)
    holds, gone = watch_rounds.confirmed(findings, again)
    if again.infra and gone:
        judgement = _with_infra(judgement, *again.infra)
    return _settle(one, judgement, findings=holds, document=document, unconfirmed=gone)


def judged(one: WatchRound, run: Run) -> tuple[Document, Judgement]:
    """A run of a round as the watch's rule sees it. A node under review raises no alert."""
    document = runs.document(run)
    watch = one.watch
    names = {cell.node for cell in document.cells if cell.node}
    nodes = {block.node for block in run.blocks.select_related("node") if block.node is not None}
    reviewed = {node.name for node in nodes if node.health == NodeHealth.QUARANTINED and node.name in names}
    trusted = document.model_copy(update={"cells": [c for c in document.cells if c.node not in reviewed]})
    old, new = str(watch.runtime(one.old)), str(watch.runtime(one.new))
    judgement = watch_rounds.judge(trusted, watch.rule, old=old, new=new)
    if reviewed:
        names_said = ", ".join(sorted(reviewed))
        judgement = _with_infra(judgement, f"What {names_said} measured does not count: the node is under review.")
    return document, judgement


def _settle(
    one: WatchRound,
    judgement: Judgement,
    *,
    findings: list[Finding],
    document: Document | None,
    unconfirmed: list[Finding] | None = None,
) -> bool:
    """The round's last step, with everything that follows from it, in one transaction. False: somebody was first."""
    outcome = _outcome(judgement, findings, unconfirmed or [])
    with transaction.atomic():
        moved = one.move(
            RoundState.JUDGED,
            was=RoundState(one.state),
            outcome=outcome,
            sentence=_sentence(judgement, findings, unconfirmed or [])[:2000],
            compared=judgement.compared,
            judged_at=timezone.now(),
        )
        if not moved:
            return False
        if document is not None:
            series.keep_points(one, document)
            openings.raise_alerts(one, document, findings)
            resolutions.resolve_alerts(one, document)
        openings.note_pipeline(one, judgement)
    return True


def _outcome(judgement: Judgement, findings: list[Finding], unconfirmed: list[Finding]) -> RoundOutcome:
    if findings:
        return RoundOutcome.ALERT
    if judgement.infra or not (judgement.compared or judgement.undecided):
        return RoundOutcome.INFRA
    if unconfirmed:
        return RoundOutcome.UNCONFIRMED
    if judgement.undecided:
        return RoundOutcome.UNDECIDED
    return RoundOutcome.NEWS if judgement.news else RoundOutcome.QUIET


def _sentence(judgement: Judgement, findings: list[Finding], unconfirmed: list[Finding]) -> str:
    """What the round came to, most telling first."""
    parts: list[str] = []
    if findings:
        others = f" {counted(len(findings) - 1, 'more finding')}." if len(findings) > 1 else ""
        parts.append(watch_rounds.worst(findings).text + others)
    parts += judgement.infra[:1]
    if unconfirmed:
        parts.append(f"Not confirmed by a fresh block: {watch_rounds.worst(unconfirmed).text}")
    if not parts:
        parts += [undecided.text for undecided in judgement.undecided[:1]] or list(judgement.news[:1])
    return " ".join(parts) or f"{counted(judgement.compared, 'pair')} compared, no changes to report."


def _with_infra(judgement: Judgement, *texts: str) -> Judgement:
    return replace(judgement, infra=(*judgement.infra, *texts))


def _lost(text: str) -> Judgement:
    return Judgement(infra=(text,))
