"""Cuts a GGUF file into parts, as the split.* keys say it: split_gguf.py FILE PART... (whole tensors, about equal shares)."""
import os
import struct
import sys

SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
U16, I32, STRING, ARRAY = 2, 5, 8, 9


class Cursor:
    def __init__(self, data):
        self.data, self.at = data, 0

    def number(self, code):
        value = struct.unpack_from("<" + code, self.data, self.at)[0]
        self.at += struct.calcsize(code)
        return value

    def text(self):
        n = self.number("Q")
        self.at += n
        return self.data[self.at - n:self.at]

    def skip(self, kind):
        if kind == STRING:
            self.text()
        elif kind == ARRAY:
            inner = self.number("I")
            for _ in range(self.number("Q")):
                self.skip(inner)
        else:
            self.at += SIZES[kind]


def key(name, kind, code, value):
    return struct.pack("<Q", len(name)) + name + struct.pack("<I" + code, kind, value)


def read(path):
    """Keys as they are, their number, alignment, and tensors: [name, what follows it up to the offset, its bytes]."""
    with open(path, "rb") as f:
        data = f.read()
    c = Cursor(data)
    c.at = 8
    n_tensors, n_keys = c.number("Q"), c.number("Q")
    start, align = c.at, 32
    for _ in range(n_keys):
        name, kind = c.text(), c.number("I")
        if name == b"general.alignment":
            align = struct.unpack_from("<I", data, c.at)[0]
        c.skip(kind)
    keys, tensors = data[start:c.at], []
    for _ in range(n_tensors):
        name, shape = c.text(), c.at
        c.at += 4
        c.at = shape + 4 + 8 * struct.unpack_from("<I", data, shape)[0] + 4
        shape = data[shape:c.at]
        tensors.append([name, shape, c.number("Q")])
    base = (c.at + align - 1) // align * align
    order = sorted(tensors, key=lambda t: t[2])
    ends = [t[2] for t in order[1:]] + [len(data) - base]
    for t, end in zip(order, ends):
        t[2] = data[base + t[2]:base + end]
    return keys, n_keys, align, tensors


def write(path, keys, n_keys, align, tensors):
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), n_keys) + keys
    at = 0
    for name, shape, data in tensors:
        head += struct.pack("<Q", len(name)) + name + shape + struct.pack("<Q", at)
        at += (len(data) + align - 1) // align * align
    with open(path, "wb") as f:
        f.write(head + bytes(-len(head) % align))
        for _, _, data in tensors:
            f.write(data + bytes(-len(data) % align))


def main():
    source, parts = sys.argv[1], sys.argv[2:]
    keys, n_keys, align, tensors = read(source)
    for i, path in enumerate(parts):
        mine = tensors[len(tensors) * i // len(parts):len(tensors) * (i + 1) // len(parts)]
        said = (key(b"split.no", U16, "H", i) + key(b"split.count", U16, "H", len(parts))
                + key(b"split.tensors.count", I32, "i", len(tensors)))
        if i == 0:
            write(path, keys + said, n_keys + 3, align, mine)
        else:
            arch = b"general.architecture"
            said += struct.pack("<Q", len(arch)) + arch + struct.pack("<IQ", STRING, 4) + b"part"
            said += key(b"general.alignment", 4, "I", align)
            write(path, said, 5, align, mine)
    print(" ".join(str(os.path.getsize(p)) for p in parts))


if __name__ == "__main__":
    main()
