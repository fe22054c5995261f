"""What 0006 and 0007 do to names that two nodes have: code of an older version may let one in between the two."""


def rename_doubles(apps, schema_editor):
    """Each node of the farm gets a name of its own that is no number; the eldest keeps its name."""
    Node = apps.get_model("fleet", "Node")
    NodeEvent = apps.get_model("fleet", "NodeEvent")
    nodes = list(Node.objects.exclude(health="retired").order_by("pk").only("pk", "name"))
    taken = {node.name.lower() for node in nodes}
    seen = set()
    for node in nodes:
        is_number = node.name.isdecimal()
        if node.name.lower() not in seen and not is_number:
            seen.add(node.name.lower())
            continue
        before, name = node.name, _free(f"node-{node.name}" if is_number else node.name, taken)
        Node.objects.filter(pk=node.pk).update(name=name)
        why = "a number is no name" if is_number else "another node has that name"
        text = f"{before} is called {name} from now on: {why}."
        NodeEvent.objects.create(node=node, kind="renamed", text=text, facts={"before": before})
        taken.add(name.lower())
        seen.add(name.lower())


def _free(name, taken):
    tries = [name] + [f"{name[:58]}-{number}" for number in range(2, len(taken) + 3)]
    return next(one for one in tries if one.lower() not in taken)
