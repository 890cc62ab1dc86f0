#!/usr/bin/env python3
"""Goal: every rule of tools/tidy finds its breach, and a clean tree passes. Method: small trees in a temporary folder, one
breach each, and the rule's name looked for in what tidy says.

usage: test_tidy.py TIDY
"""
import os
import subprocess
import sys
import tempfile

HEAD = "/* What this file is. */\n"
ROOMS = "# room: needs\nbase:\nnet: base\nwrite: base\nwrite/files: base write\n"
GUARDED = HEAD + "#ifndef BASE_A_H\n#define BASE_A_H\nint base_a(void);\n#endif\n"
CLEAN = {
    "tools/rooms.txt": ROOMS,
    "src/base/README.md": "base is the bottom.\n",
    "src/base/a.h": GUARDED,
    "src/base/a.c": HEAD + '#include "base/a.h"\n\nint base_a(void) {\n    return 1; /* free(x) in words */\n}\n',
    "include/tarn/x.h": HEAD + "#ifndef TARN_X_H\n#define TARN_X_H\n"
                        "TARN_API int tarn_x(const char *name, /* @borrow */\n                    int n,\n"
                        "                    char **out /* @give: free */);\n#endif\n",
}
LONG = "int base_long(void) {\n" + "    base_a();\n" * 80 + "}\n"
FILES = HEAD + '#include "%s"\n'

# name, files laid over the clean tree, what tidy must say ("" for nothing)
CASES = [
    ("clean", {}, ""),
    ("upward include", {"src/base/b.c": FILES % "net/n.h", "src/net/n.h": GUARDED}, ": room: room base may not name net"),
    ("longest folder is the room", {"src/write/files/w.c": FILES % "net/n.h", "src/net/n.h": GUARDED,
                                    "src/write/files/README.md": "w\n"}, ": room: room write/files may not name net"),
    ("inner header of another room", {"src/net/n.c": FILES % "base/a_int.h", "src/base/a_int.h": GUARDED,
                                      "src/net/README.md": "n\n"}, ": room: base/a_int.h is inside base only"),
    ("absent header", {"src/base/b.c": FILES % "base/none.h"}, ": room: no file src/base/none.h"),
    ("no room", {"src/stray.c": HEAD}, ": room: this file is in no room"),
    ("need below", {"tools/rooms.txt": "base: net\nnet:\nwrite:\nwrite/files:\n"}, ": room: base needs net"),
    ("library of another room", {"src/base/b.c": HEAD + "#include <sqlite3.h>\n"}, ": room: <sqlite3.h>"),
    ("app looks inside", {"apps/t/m.c": FILES % "base/a.h"}, ": room: apps and examples include"),
    ("clock", {"src/base/b.c": HEAD + "int b(void) {\n    return time(0);\n}\n"}, ": effect-clock: time"),
    ("sleep", {"src/base/b.c": HEAD + "int b(void) {\n    usleep(1);\n}\n"}, ": effect-clock: usleep"),
    ("random", {"src/base/b.c": HEAD + "int b(void) {\n    return rand();\n}\n"}, ": effect-random: rand"),
    ("thread", {"src/base/b.c": HEAD + "int b(void) {\n    pthread_create(0);\n}\n"}, ": effect-thread: pthread_create"),
    ("print", {"src/base/b.c": HEAD + 'int b(void) {\n    printf("x");\n}\n'}, ": effect-print: printf"),
    ("exit", {"src/base/b.c": HEAD + "int b(void) {\n    exit(1);\n}\n"}, ": effect-exit: exit"),
    ("file", {"src/base/b.c": HEAD + 'int b(void) {\n    unlink("x");\n}\n'}, ": effect-file: unlink"),
    ("method named open", {"src/base/b.c": HEAD + "int b(t *s) {\n    return s->vt->open(s) + s->x.close(s);\n}\n"}, ""),
    ("own function named open", {"src/base/b.c": HEAD + "static int open(t *s) {\n    return 1;\n}\n"}, ""),
    ("memory", {"src/base/b.c": HEAD + "int b(void) {\n    return free(0);\n}\n"}, ": memory: free"),
    ("banned", {"src/base/b.c": HEAD + "int b(char *x) {\n    strcpy(x, x);\n}\n"}, ": banned: strcpy"),
    ("banned in apps", {"apps/t/m.c": HEAD + "int b(char *x) {\n    atoi(x);\n}\n"}, ": banned: atoi"),
    ("long function", {"src/base/b.c": HEAD + LONG}, ": size: base_long has 82 lines"),
    ("waiver", {"src/base/b.c": HEAD + "/* tidy: long, a dispatcher over an enum */\n" + LONG}, ""),
    ("unused waiver", {"src/base/b.c": HEAD + "/* tidy: long, habit */\nint b(void) {\n}\n"}, ": waiver: b has 2 lines"),
    ("waiver without reason", {"src/base/b.c": HEAD + "/* tidy: long */\n" + LONG}, ": waiver: the form is"),
    ("waiver of nothing", {"src/base/b.c": HEAD + "/* tidy: long, lost */\n\nint b;\n"}, ": waiver: no function begins"),
    ("long table", {"src/base/b.c": HEAD + "static const int t[] = {\n" + "    1,\n" * 90 + "};\n"}, ""),
    ("long file", {"src/base/b.c": HEAD + "int b;\n" * 1000}, ": size: 1001 lines"),
    ("wide line", {"src/base/b.c": HEAD + "/* " + "x" * 98 + " */\n"}, ": size: 104 columns"),
    ("untagged pointer", {"include/tarn/y.h": CLEAN["include/tarn/x.h"].replace("@borrow", "kept")},
     ": ownership: tarn_x: parameter 'const char *name'"),
    ("untagged last pointer", {"include/tarn/y.h": CLEAN["include/tarn/x.h"].replace("@give: free", "out")},
     ": ownership: tarn_x: parameter 'char **out'"),
    ("same name twice", {"src/net/a.h": GUARDED}, ": name: there is src/base/a.h already"),
    ("odd name", {"src/base/Bad-Name.c": HEAD}, ": name: file names are"),
    ("no README", {"src/net/n.c": HEAD}, ": readme: room net has no README.md"),
    ("long README", {"src/base/README.md": "x\n" * 41}, ": readme: 41 lines"),
    ("no opening", {"src/base/b.c": "int b;\n"}, ": opening: a file opens"),
    ("no guard", {"src/base/b.h": HEAD + "int b;\n"}, ": guard: a header begins"),
    ("dead header", {"src/base/b.h": GUARDED}, ": dead: nobody includes"),
    ("unfinished", {"docs/a.md": "TO" + "DO: more\n"}, ": text: an unfinished mark"),
    ("place of one machine", {"docs/a.md": "see /wo" + "rk/shared\n"}, ": text: a place of one machine"),
    ("fixture place outside tests", {"docs/a.md": "/ta" + "rn-fixtures/x\n"}, ": text: /ta"),
    ("trailing blank", {"docs/a.md": "x \n"}, ": text: blanks at the end"),
    ("no last newline", {"docs/a.md": "x"}, ": text: no newline"),
]


def run_case(tidy, files):
    with tempfile.TemporaryDirectory() as root:
        for path, text in {**CLEAN, **files}.items():
            full = os.path.join(root, path)
            os.makedirs(os.path.dirname(full), exist_ok=True)
            with open(full, "w", encoding="utf-8") as file:
                file.write(text)
        done = subprocess.run([sys.executable, tidy, "--root", root], capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr


def main():
    failed = 0
    for name, files, want in CASES:
        status, said = run_case(sys.argv[1], files)
        good = (status == 0 and "0 found" in said) if want == "" else (status == 1 and want in said)
        if not good:
            failed += 1
            print("FAILED %s: wanted %r, got status %d:\n%s" % (name, want, status, said))
    print("%d cases, %d failed" % (len(CASES), failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
