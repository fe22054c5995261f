"""`onnxfarm tokenize MODEL`: converts texts to token ids with the model's tokenizer, as a file for `--prompts`."""

import shutil
import tempfile
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console

from farm.rules.presenting import refusals
from farm.rules.runtimes import genai
from farm.sandbox.policy import SandboxError
from farm.workshop import orders, replies
from onnxfarm.commands.bench_options import parse_ort_option
from onnxfarm.commands.options import HomeOption
from onnxfarm.here import bundle
from onnxfarm.here.home import default_home
from onnxfarm.here.user_files import convert_workshop_errors
from onnxfarm.here.workbench import make_scratch_folder
from onnxfarm.problems import Infrastructure, Usage, exit_with_problem
from worker.agent.installation import stages
from worker.agent.installation.runtimes import RuntimeStore, RuntimeUnavailableError
from worker.agent.measurement import tokens

DEFAULT_RUNTIME: Final = "onnxruntime-genai==0.13.2"
MAX_CHARACTERS: Final = 1 << 20


@exit_with_problem()
def tokenize(
    model: Annotated[Path, typer.Argument(help="Folder or zip with genai_config.json and a tokenizer.")],
    prompt: Annotated[str | None, typer.Option(help="The text to answer.")] = None,
    prompt_file: Annotated[Path | None, typer.Option(help="A file with the text to answer, UTF-8.")] = None,
    text_file: Annotated[Path | None, typer.Option(help="A file with a text to score (perplexity), UTF-8.")] = None,
    out: Annotated[Path, typer.Option(help="Where the token ids go.")] = Path("prompts.npz"),
    ort: Annotated[str, typer.Option(help="The onnxruntime-genai whose tokenizer is asked.")] = DEFAULT_RUNTIME,
    home: HomeOption = None,
) -> None:
    """Convert texts to token ids with the tokenizer of a model for onnxruntime-genai; `--prompts` takes the file."""
    texts = _read_texts(prompt, prompt_file, text_file)
    if out.suffix != ".npz":
        raise Usage(f"--out is a .npz: write --out {out.with_suffix('.npz')}.")
    if not model.exists():
        raise Usage(f"{model} does not exist: give the model's folder or zip.")
    console, home_folder = Console(stderr=True), home or default_home()
    with make_scratch_folder(home_folder) as folder:
        imported = bundle.import_model(model, folder=folder / "model", files=bundle.LocalFiles())
        if imported.inspection.genai is None:
            raise Usage(f"{model} has no {genai.CONFIG}, and so no tokenizer: give its folder, or token ids in a .npz.")
        token_ids = _run_tokenizer(texts, imported, ort=ort, home=home_folder, folder=folder, console=console)
        accepted = _accept_prompts(imported, token_ids, folder=folder)
        try:
            shutil.copyfile(accepted.path, out)
        except OSError as problem:
            raise Infrastructure(f"{out} could not be written ({problem.strerror}).") from problem
    scored = f", a text of {accepted.text_tokens:,} to score" if accepted.text_tokens else ""
    console.print(f"{out}: a prompt of {accepted.tokens:,} tokens{scored}.", highlight=False)
    console.print(f"onnxfarm bench {model} --prompts {out} --scenario generate:new=64", highlight=False, soft_wrap=True)


def _read_texts(prompt: str | None, prompt_file: Path | None, text_file: Path | None) -> dict[str, str]:
    """Read the texts to convert, by the name of their array: `prompt`, and `text` if a file is given. Raises Usage."""
    if (prompt is None) == (prompt_file is None):
        raise Usage("One text is answered: give --prompt or --prompt-file.")
    texts = {"prompt": _read_text_file(prompt_file) if prompt_file is not None else prompt or ""}
    if text_file is not None:
        texts["text"] = _read_text_file(text_file)
    for name, text in texts.items():
        if not text:
            raise Usage(f"The {name} is empty: give at least a word.")
        if len(text) > MAX_CHARACTERS:
            raise Usage(f"The {name} has {len(text):,} characters: at most {MAX_CHARACTERS:,} are taken.")
    return texts


def _read_text_file(path: Path) -> str:
    try:
        with path.open(encoding="utf-8") as opened:
            return opened.read(MAX_CHARACTERS + 1)
    except UnicodeDecodeError as problem:
        raise Usage(f"{path} cannot be read as UTF-8: save it as UTF-8.") from problem
    except OSError as problem:
        raise Usage(f"{path} cannot be read ({problem.strerror}).") from problem


def _run_tokenizer(
    texts: dict[str, str], imported: bundle.ImportedModel, *, ort: str, home: Path, folder: Path, console: Console
) -> Path:
    runtime = parse_ort_option(ort)
    if not genai.is_genai(runtime):
        raise Usage(f"{runtime} has no tokenizer: take {DEFAULT_RUNTIME}.")
    try:
        installed = RuntimeStore(home / "runtimes", say=lambda text: console.print(text)).provide(runtime)
        work = Path(tempfile.mkdtemp(prefix="tokens-", dir=folder))
        return tokens.write_token_ids(
            texts, model=imported.folder / imported.main, runtime=installed, stage=stages.stage_runner(home), work=work
        )
    except (RuntimeUnavailableError, tokens.TokenizationError) as problem:
        raise Usage(refusals.describe_reason(problem.reason)) from problem
    except SandboxError as problem:
        raise Infrastructure(str(problem)) from problem


def _accept_prompts(imported: bundle.ImportedModel, token_ids: Path, *, folder: Path) -> replies.PromptsReply:
    """Check the token ids like an upload, because a sandboxed process wrote them. Raises Usage."""
    checked = folder / "checked"
    checked.mkdir()
    with convert_workshop_errors():
        return orders.accept_prompts(imported.folder, imported.main, prompts=token_ids, out_dir=checked)
