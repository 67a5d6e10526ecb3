"""llama-completion of llama.cpp in a cage: prefill and decode speed on real text."""
import re
import subprocess

TEXT = ("On day %d the keeper of the lighthouse wrote that the wind came from the %s, that %d ships passed, and that the "
        "lamp burned %d litres of oil. ")


def text(n_bytes):
    """Real words; in a model whose tokens are bytes, that many tokens."""
    s = "".join(TEXT % (d, ("north", "east", "south", "west")[d % 4], d * 7 % 13, 3 + d % 5) for d in range(1, n_bytes // 80 + 2))
    return s[:n_bytes]


def parse(stderr):
    """{"pp": tokens/s, "tg": tokens/s} from the lines llama.cpp prints at its end."""
    rates = {}
    for line in stderr.splitlines():
        m = re.search(r"(prompt eval|eval) time =.*?([\d.]+) tokens per second", line)
        if m:
            rates["pp" if m.group(1) == "prompt eval" else "tg"] = float(m.group(2))
    return rates


def run(program, model, prompt, n_gen, threads, cage=None, ways=("--no-repack", "-lm", "mmap"), timeout=1200):
    """One run; None when it was killed or came to nothing."""
    command = [program, "-m", model, "-p", prompt, "-n", str(n_gen), "-t", str(threads), "-c", "1024", "--temp", "0",
               "--ignore-eos", "-no-cnv", "--no-warmup", "--perf"] + list(ways)
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              preexec_fn=cage.enter if cage else None, timeout=timeout)
    except subprocess.TimeoutExpired:
        return None
    rates = parse(done.stdout.decode("utf-8", "replace"))
    return rates if done.returncode == 0 and "tg" in rates else None
