"""C++ as a small reader sees it: tokens, and what of a file's structure the rules count.

Not a compiler: comments and preprocessor lines are left out, macros are taken as they look. What is
found agrees with a syntax tree on this project's code.

>>> found = read("int f() { int a = 1, b; a = 1, b = 2; return a ? b ? 1 : 2 : 3; }")
>>> [(kind, line) for kind, line, _ in found.faults]
[('several-declarators', 1), ('comma-statement', 1), ('nested-conditional', 1)]
>>> found.statements  # tokens of each declaration, expression statement and return
[7, 8, 11]
>>> read("std::map<int, int> m; void f() { g(a, b); for (; i < n; ++i, ++j) g<a, b>(c); }").faults
[]
>>> read("struct A { A() : b(1), c{2} {} };").faults
[]
>>> read("struct S { int a = 0, b[2]; S* p; void f(int, int); };").faults
[('several-declarators', 1, 2)]
>>> long = "\\n" * 90
>>> read("template <class T>\\nint f(T t) {" + long + "}").faults
[('function-over-80', 2, 91)]
>>> read("void f() { const auto g = [&](int a) {" + long[:30] + "}; }").faults
[('lambda-over-25', 1, 31)]
>>> read("void f() { for (;;) if (a) while (b) h([] { if (c) ; else if (d) for (;;) ; }); }").faults
[('nesting-over-4', 1, 6)]
"""

import bisect
import collections
import re

LIMITS = {"function": 80, "lambda": 25, "class": 250, "nesting": 4}
TOKEN = re.compile(
    r"(?P<skip>\s+|//(?:\\\n|[^\n])*|/\*.*?\*/)"
    r'|(?P<string>(?:u8|[uUL])?(?:R"(?P<raw>[^(]*)\(.*?\)(?P=raw)"|"(?:\\.|[^"\\])*"))'
    r"|(?P<char>'(?:\\.|[^'\\])+')"
    r"|(?P<number>\.?\d(?:[eEpP][+-]|'?[\w.])*)"
    r"|(?P<word>[A-Za-z_]\w*)"
    r"|(?P<directive>\#(?:\\\n|/\*.*?\*/|[^\n])*)"
    r"|(?P<symbol><<<|<=>|->\*|\.\.\.|<<=|>>=|::|->|\+\+|--|<<|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|.)",
    re.S,
)
OPEN = {"(": ")", "[": "]", "{": "}"}
SPECIFIERS = set(
    "static const constexpr consteval constinit inline mutable thread_local extern volatile"
    " typename virtual explicit friend".split()
)
BUILTIN = set("auto bool char int long short signed unsigned float double void".split())
# Words that begin a statement which is no declaration of variables.
NO_TYPE = set(
    "return co_return co_yield throw break continue goto using typedef static_assert delete new"
    " sizeof this namespace case default public private protected operator else".split()
)
Token = collections.namedtuple("Token", "kind text line")


def tokens_of(text):
    """Tokens without comments; a preprocessor line is one token of kind "directive"."""
    ends = [match.start() for match in re.finditer("\n", text)]
    found = []
    for match in TOKEN.finditer(text):
        kind = match.lastgroup if match.lastgroup != "raw" else "string"
        if kind != "skip":
            line = bisect.bisect_left(ends, match.start()) + 1
            found.append(Token(kind, match.group(), line))
    return found


def leaves_of(tokens):
    """How many leaves tokens are in a syntax tree: a string is its quotes and what stands between.

    >>> leaves_of(tokens_of('#include "a.h"\\nf("a\\\\n", "", 1);'))
    17
    """
    count = 0
    for kind, text, _ in tokens:
        if kind in ("string", "char"):
            count += 2 + len(re.findall(r"\\.|[^\\]+", text[1:-1]))
        elif kind == "directive":
            words = text.split(None, 2)
            count += len(words) + 2 * text.endswith('"')
        else:
            count += 1
    return count


class Reader:
    """Walks the tokens of one file, statement by statement."""

    def __init__(self, tokens):
        self.tokens = [t for t in tokens if t.kind != "directive"]
        self.texts = [t.text for t in self.tokens] + [""] * 3
        self.close = self.matched()
        self.faults, self.statements = [], []
        self.deepest = 0

    def matched(self):
        """The place of the bracket that closes each one that opens."""
        close, waiting = {}, []
        for at, text in enumerate(self.texts):
            if text in OPEN:
                waiting.append(at)
            elif text in OPEN.values() and waiting:
                close[waiting.pop()] = at
        return close | {at: len(self.tokens) - 1 for at in waiting}

    def fault(self, kind, at, amount):
        self.faults.append((kind, self.tokens[at].line, amount))

    def long(self, kind, start, end):
        lines = self.tokens[min(end, len(self.tokens) - 1)].line - self.tokens[start].line + 1
        if lines > LIMITS[kind]:
            self.fault(f"{kind}-over-{LIMITS[kind]}", start, lines)

    def angle(self, at, header=False):
        """The `>` of template arguments that begin at `<`; None where it only compares."""
        depth = 0
        while at < len(self.tokens):
            text = self.texts[at]
            if text == "<":
                depth += 1
            elif text in (">", ">=", ">>="):
                depth -= 1
                if depth == 0:
                    return at if text == ">" else None
            elif text in "([" or (text == "{" and self.texts[at - 1] != ")"):
                at = self.close[at]
            elif text == "&&" and self.texts[at + 1] not in (">", ",", ")", "..."):
                if not header:
                    return None
            elif text in (";", "{", "}", ")", "]") or (text in ("||", "=", "?") and not header):
                return None
            at += 1
        return None

    def angles_at(self, at):
        """The end of template arguments at `at`, or of a launch's <<<…>>>, if there are any."""
        if self.texts[at] == "<<<":
            return self.texts.index(">", at) + 2
        if self.texts[at] == "<" and at and self.tokens[at - 1].kind == "word":
            return self.angle(at)
        return None

    # Scopes: a file, namespaces, classes.

    def scope(self, at, end):
        while at < end:
            at = self.item(at, end)

    def item(self, at, end):
        """One declaration of a scope; the place after it."""
        text = self.texts[at]
        if text in ("public", "private", "protected") and self.texts[at + 1] == ":":
            return at + 2
        if text == "template" and self.texts[at + 1] == "<":
            return (self.angle(at + 1, header=True) or at + 1) + 1
        if text in (";", "}"):
            return at + 1
        start, parameters, initial = at, False, False
        while at < end:
            text = self.texts[at]
            if text == ";":
                self.simple(start, at, 0)
                return at + 1
            if text in ("namespace", "extern", "class", "struct", "union", "enum"):
                if not parameters and not initial and (after := self.inner_scope(at, end)):
                    return after
            elif text == "operator":
                at = self.after_operator(at)
                continue
            elif text == "(":
                if at == start + 1 and self.is_alone(self.close[at]):
                    return self.close[at] + 1
                parameters = True
            elif text == "=":
                initial = True
            elif text == ":" and parameters and not initial:
                at = self.initializers(at + 1)
                continue
            elif text == "{" and parameters and not initial:
                return self.function(start, at)
            at = (self.angles_at(at) or self.close.get(at, at)) + 1
        return end

    def is_alone(self, at):
        """Whether a `)` ends a macro's call that no semicolon follows."""
        after = self.tokens[at + 1] if at + 1 < len(self.tokens) else Token("", "", 0)
        return after.kind == "word" and after.line > self.tokens[at].line

    def inner_scope(self, at, end):
        """The place after a namespace, class or enum that begins at `at`; None where only a name
        stands."""
        keyword = self.texts[at]
        body = self.body_of_class(at, end)
        if body is None or (keyword == "extern" and body != at + 2):
            return None
        if keyword in ("namespace", "extern"):
            self.scope(body + 1, self.close[body])
            return self.close[body] + 1
        if keyword != "enum":
            self.long("class", at, self.close[body])
            self.scope(body + 1, self.close[body])
        return self.after_class(self.close[body] + 1)

    def after_operator(self, at):
        """Past the name of an operator: at its parameters."""
        at += 2
        if self.texts[at - 1] == "(" and self.texts[at + 1] == "(":
            at += 1
        while self.texts[at] not in ("(", ";", ""):
            at += 1
        return at

    def body_of_class(self, at, end):
        """The `{` of a class or enum whose keyword is at `at`; None where it is only named."""
        while at < end and self.texts[at] not in (";", "=", "(", ")", ","):
            if self.texts[at] == ":":  # base classes
                while at < end and self.texts[at] not in (";", "{"):
                    at = (self.angles_at(at) or at) + 1
            if self.texts[at] == "{":
                return at
            at = (self.angles_at(at) or at) + 1
        return None

    def after_class(self, at):
        """Past what is declared between a class's `}` and the `;`."""
        while at < len(self.tokens) and self.texts[at] != ";":
            at = self.close.get(at, at) + 1
        return at + 1

    def initializers(self, at):
        """Past the initializers of a constructor: at the `{` of its body."""
        while at < len(self.tokens) and self.texts[at] != ";":
            while self.texts[at] not in ("(", "{"):
                at = (self.angles_at(at) or at) + 1
            at = self.close[at] + 1
            while self.texts[at] == "...":
                at += 1
            if self.texts[at] != ",":
                return at
            at += 1
        return at

    def function(self, start, body):
        """A function from its first token; its body's `{` is at `body`."""
        before, self.deepest = self.deepest, 0
        end = self.close[body]
        self.expressions(start, body, 0)
        self.block(body, 0)
        if self.deepest > LIMITS["nesting"]:
            self.fault("nesting-over-4", start, self.deepest)
        self.deepest = before
        self.long("function", start, end)
        return end + 1

    # Statements.

    def block(self, at, depth):
        end = self.close[at]
        at += 1
        while at < end:
            at = self.statement(at, depth)
        return end + 1

    def statement(self, at, depth):
        """One statement within a function; the place after it."""
        text = self.texts[at]
        if text == "{":
            return self.block(at, depth)
        if text in ("if", "for", "while", "switch"):
            return self.control(at, depth + 1)
        if text == "do":
            self.deepest = max(self.deepest, depth + 1)
            at = self.statement(at + 1, depth + 1)
            return self.simple_until(at, depth)
        if text in ("else", "try"):
            return self.statement(at + 1, depth)
        if text == "catch":
            return self.statement(self.close[at + 1] + 1, depth)
        if text in ("case", "default"):
            while self.texts[at] != ":":
                at = self.close.get(at, at) + 1
            return at + 1
        if self.tokens[at].kind == "word" and self.texts[at + 1] == ":":
            return at + 2
        if text in ("class", "struct", "union", "enum"):
            return self.inner_scope(at, len(self.tokens)) or self.simple_until(at, depth)
        return self.simple_until(at, depth)

    def control(self, at, depth):
        """if, for, while or switch, whose own depth is `depth`; an `else if` is no deeper."""
        self.deepest = max(self.deepest, depth)
        keyword = self.texts[at]
        at += 1
        while self.texts[at] != "(":
            at += 1
        self.head(keyword, at, depth)
        at = self.statement(self.close[at] + 1, depth)
        while keyword == "if" and self.texts[at] == "else":
            if self.texts[at + 1] == "if":
                return self.control(at + 1, depth)
            at = self.statement(at + 1, depth)
        return at

    def head(self, keyword, at, depth):
        """What stands in the parentheses of a control statement."""
        start, end = at + 1, self.close[at]
        parts, at = [], start
        while at < end:
            if self.texts[at] == ";":
                parts.append((start, at))
                start = at + 1
            at = self.close.get(at, at) + 1
        parts.append((start, end))
        ranged = keyword == "for" and len(parts) < 3 and self.declared(*parts[-1])
        for first, last in parts:
            if first == parts[0][0] and first < last and self.declared(first, last) and not ranged:
                self.simple(first, last, depth)
            else:
                self.expressions(first, last, depth)

    def simple_until(self, at, depth):
        start = at
        while at < len(self.tokens) and self.texts[at] not in (";", "}"):
            at = self.close.get(at, at) + 1
        if at > start:
            self.simple(start, at, depth)
        return at + (self.texts[at] == ";")

    def declared(self, start, end):
        """The first declared name of a statement that declares variables; else None."""
        at, typed = start, False
        while at < end:
            token, text = self.tokens[at], self.texts[at]
            following = self.texts[at + 1] if at + 1 < end else ";"
            if text == "[" and self.texts[at + 1] == "[" and at == start:
                at = self.close[at]
            elif text in NO_TYPE or (text in ("class", "struct", "enum") and typed):
                return None
            elif text in SPECIFIERS | {"class", "struct", "enum"}:
                pass
            elif text in BUILTIN:
                typed = True
                if following == "[":  # auto [a, b]
                    return at + 1
            elif text == "::":
                typed = False
            elif text in ("*", "&", "&&") and typed:
                if following == "[":
                    return at + 1
            elif token.kind == "word":
                if typed and following != "::":
                    return at if following in "=;,([{:" else None
                typed = True
                if angle := self.angles_at(at + 1):
                    at = angle
            elif text == "(" and typed and self.texts[at - 1] == "decltype":
                at = self.close[at]
            else:
                return None
            at += 1
        return None

    def commas(self, at, end):
        """Commas of a statement outside all brackets, those of template arguments too."""
        count = 0
        while at < end:
            count += self.texts[at] == ","
            at = (self.angles_at(at) or self.close.get(at, at)) + 1
        return count

    def simple(self, start, end, depth):
        """A statement without statements of its own but for lambdas: from `start` to its `;`."""
        name = self.declared(start, end)
        first = self.texts[start]
        commas = self.commas(name or start, end)
        if commas and name:
            self.fault("several-declarators", start, commas + 1)
        elif commas and (first == "return" or first not in NO_TYPE):
            self.fault("comma-statement", start, 1)
        inside = self.expressions(start, end, depth, bool(name))
        if first == "return" or first not in NO_TYPE:
            self.statements.append(end - start + 1 - inside)

    # Expressions.

    def expressions(self, at, end, depth, declares=False):
        """Lambdas and nested conditionals of an expression; the tokens in bodies of lambdas."""
        inside = self.lambdas(at, end, depth, declares)
        self.conditionals(at, end)
        return inside

    def lambdas(self, at, end, depth, declares):
        inside = 0
        while at < end:
            body = self.lambda_body(at)
            if body is None:
                at += 1
                continue
            self.expressions(at + 1, body, depth + 1)
            self.deepest = max(self.deepest, depth + 1)
            after = self.block(body, depth + 1)
            named = declares and self.texts[at - 1] == "=" and self.texts[after] in (";", ",")
            if named:
                self.long("lambda", at, after - 1)
            inside += after - body
            at = after
        return inside

    def lambda_body(self, at):
        """The `{` of a lambda that begins at `at`; None where none does."""
        if self.texts[at] != "[" or self.texts[at + 1] == "[":
            return None
        before = self.tokens[at - 1] if at else Token("symbol", "", 0)
        value = before.kind in ("word", "string") and before.text not in NO_TYPE | {"return"}
        if value or before.text in (")", "]", "[") or before.text == "operator":
            return None
        at = self.close[at] + 1
        if self.texts[at] == "<":
            at = (self.angle(at, header=True) or at) + 1
        if self.texts[at] == "(":
            at = self.close[at] + 1
        elif self.texts[at] not in ("{", "mutable", "noexcept", "->", "constexpr"):
            return None
        while self.texts[at] not in ("{", ";", ")", ",", ""):
            at = (self.angles_at(at) or self.close.get(at, at)) + 1
        return at if self.texts[at] == "{" else None

    def conditionals(self, start, end):
        """Nested conditional operators between two places, each bracket on its own."""
        at, first, marks = start, start, []
        while at < end:
            text = self.texts[at]
            body = self.lambda_body(at)
            if body is not None:
                at = self.close[body]
            elif text in OPEN:
                inner = self.conditionals(at + 1, self.close[at])
                begins = at == start or self.texts[at - 1] in ("?", ":", "=", "return", "(", ",")
                after = self.texts[self.close[at] + 1]
                if text == "(" and inner and begins and after in ("?", ":", ";", ",", ")"):
                    marks.append((at, "nested", after))
                at = self.close[at]
            elif angle := self.angles_at(at):
                at = angle
            elif text == "?":
                marks.append((at, "?", ""))
            elif text in (",", ";"):
                self.nested(marks)
                first, marks = at + 1, []
            at += 1
        return self.nested(marks) and first == start

    def nested(self, marks):
        """Faults of one expression with these marks; whether it is a conditional."""
        asked = [at for at, kind, _ in marks if kind == "?"]
        for at in asked[1:]:
            self.fault("nested-conditional", at, 1)
        if asked:
            for at, kind, after in marks:
                if kind == "nested" and (after != "?" or at < asked[0]):
                    self.fault("nested-conditional", at, 1)
        return bool(asked)


Found = collections.namedtuple("Found", "faults statements tokens")


def read(text):
    """Faults (kind, line, amount), tokens of each statement, and all tokens of a file's text."""
    tokens = tokens_of(text)
    reader = Reader(tokens)
    reader.scope(0, len(reader.tokens))
    return Found(sorted(reader.faults, key=lambda fault: fault[1]), reader.statements, tokens)
