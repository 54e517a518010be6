"""`make test-clients`: installs the real clients, runs them against real servers, and judges the conformance matrix.

    python tests/clients/run.py                      all of them
    python tests/clients/run.py openai cohere        some of them
    python tests/clients/run.py --document           also write the results into docs/clients.md

The exit code is 1 if a check failed or a row of need M or S is neither met nor excused in docs/clients.md.
"""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import document
from environments import CannotInstallError
from report import Outcome, matrix_lines, run_client
from roster import CLIENTS, LIGHT
from servers import all_servers


def main() -> int:
    """Run the chosen clients and print one line a check, then one a row of the matrix."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("clients", nargs="*", metavar="CLIENT", help=", ".join(client.name for client in CLIENTS))
    parser.add_argument("--document", action="store_true", help="write the results into docs/clients.md")
    arguments = parser.parse_args()
    unknown = set(arguments.clients) - {client.name for client in CLIENTS}
    if unknown:
        parser.error(f"no such client: {', '.join(sorted(unknown))}")
    chosen = [client for client in CLIENTS if not arguments.clients or client.name in arguments.clients]
    whole = len(chosen) == len(CLIENTS)
    if arguments.document and not whole:
        parser.error("--document needs all clients")
    environments = list(dict.fromkeys([LIGHT, *(client.environment for client in chosen)]))
    try:
        for position, environment in enumerate(environments, 1):
            print(f"[{position}/{len(environments)}] environment {environment.name}", flush=True)
            environment.ensure()
    except CannotInstallError as error:
        print(f"cannot install: {error}", file=sys.stderr)
        return 1
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the servers are ended, too
    outcome = Outcome()
    with tempfile.TemporaryDirectory() as folder, all_servers(Path(folder)) as urls:
        print("servers are up", flush=True)
        for client in chosen:
            versions = client.versions()
            print(f"\n{client.name} ({', '.join(f'{name} {version}' for name, version in versions.items())})")
            for line in run_client(client, urls):
                outcome.lines.append(line)
                print(line, flush=True)
    return _close(outcome, whole=whole, write=arguments.document)


def _close(outcome: Outcome, *, whole: bool, write: bool) -> int:
    printed, good = matrix_lines(outcome, whole=whole)
    print("\nconformance matrix", *printed, sep="\n")
    if write:
        document.write(outcome)
    failed = [line for line in outcome.lines if line.failed]
    known = [line for line in outcome.lines if line.why and not line.failed]
    print(
        f"\n{len(outcome.lines) - len(failed)} checks passed ({len(known)} known contradictions), {len(failed)} failed"
    )
    for line in failed:
        print(line)
    return 0 if good and not failed else 1


if __name__ == "__main__":
    sys.exit(main())
