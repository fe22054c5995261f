"""Creates or removes the broker user of a node in the farm's own network, and prints the address for its agent."""

from django.core.management.base import BaseCommand, CommandError, CommandParser

from farm.base.refusals import Invalid
from farm.contract.version import name_node_queue
from farm.fleet.models import Node
from farm.runs import direct_lines


class Command(BaseCommand):
    help = "Make a user of the broker for a node, and print what to start its agent with. Again: a new secret."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("node", help="its name")
        parser.add_argument("--host", default="", help="how the node reaches the broker, like farm.lan:6379")
        parser.add_argument("--off", action="store_true", help="remove the user; its open connections end")

    def handle(self, *args: object, **options: str) -> None:
        node = Node.objects.filter(name=options["node"]).exclude(health="retired").order_by("-pk").first()
        if node is None and not options["off"]:
            raise CommandError(f"There is no node “{options['node']}” at work; `onnxfarm node list` names them.")
        try:
            if options["off"]:
                self._off(options["node"])
                return
            assert node is not None
            address = direct_lines.open_line(
                str(node.pk), {name_node_queue(str(node.pk)), *node.queues}, host=options["host"]
            )
        except Invalid as problem:
            raise CommandError(str(problem)) from problem
        self.stdout.write(f"ONNXFARM_NODE_BROKER={address}")

    def _off(self, name: str) -> None:
        nodes = Node.objects.filter(name=name)
        ended = [node for node in nodes if direct_lines.close_line(str(node.pk))]
        if not ended:
            raise CommandError(f"No node “{name}” has a direct line.")
        self.stdout.write(f"{name} has no direct line any more.")
