#include "runtime/units.h"
#include <fmt/format.h>
#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>
#include "base/casts.h"
#include "codegen/launch_list.h"
#include "runtime/text_places.h"

namespace warploom::runtime {
namespace {
constexpr size_t kUnitBytes = 32 << 10;  // of text; a longer text is a unit by itself

// A text of a list, and which kernels have it.
struct Text {
  std::string source;
  std::vector<size_t> kernels = {};
  std::set<std::string> names = {};
  // its directives at the beginning, and the rest
  std::string head = {};
  std::string body = {};
  bool alone = false;

  const std::string& name() const { return *names.begin(); }
};

bool is_blank_or_comment(const std::string& line) {
  const size_t first = line.find_first_not_of(" \t");
  return first == std::string::npos || line.compare(first, 2, "//") == 0;
}

// Takes a text apart. It stays alone where directives stand behind the beginning, but for pragmas,
// or go on in another line.
void take_apart(Text& text, bool marked) {
  std::istringstream lines(text.source);
  bool beginning = true;
  bool jumped = true;  // the last line went to the head
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    const bool directive = line.starts_with('#');
    beginning = beginning && (directive || is_blank_or_comment(line));
    text.alone |= directive && line.ends_with('\\');
    text.alone |= directive && !beginning && !line.starts_with("#pragma");
    ++number;
    const bool of_head = directive && beginning;
    if (marked && jumped && !of_head) text.body += place_mark(number, text.name());
    jumped = of_head;
    (of_head ? text.head : text.body) += line + "\n";
  }
}

std::vector<Text> texts_of(const LaunchList& list, bool marked) {
  std::vector<Text> texts;
  std::map<std::string, size_t> known;
  for (size_t k = 0; k < list.kernels.size(); ++k) {
    const Kernel& kernel = list.kernels[k];
    const auto [place, fresh] = known.try_emplace(kernel.source, texts.size());
    if (fresh) texts.push_back({kernel.source});
    Text& text = texts[place->second];
    text.kernels.push_back(k);
    text.names.insert(kernel.name);
  }
  std::set<std::string> taken;
  for (Text& text : texts) {
    take_apart(text, marked);
    text.alone |= list.engine == Engine::cuda;
    for (const std::string& name : text.names)
      text.alone |= !taken.insert(name).second;
  }
  return texts;
}

Unit unit_of(const std::vector<const Text*>& texts) {
  Unit unit{.texts = as_int(texts.size())};
  for (const Text* text : texts) {
    const auto& kernels = text->kernels;
    unit.kernels.insert(unit.kernels.end(), kernels.begin(), kernels.end());
  }
  if (texts.size() == 1) {
    unit.text = texts[0]->source;
    return unit;
  }
  unit.text = texts[0]->head;
  for (size_t i = 0; i < texts.size(); ++i)
    unit.text +=
        fmt::format("\nnamespace part_{0} {{\n{1}}}  // namespace part_{0}\n", i, texts[i]->body);
  return unit;
}

// Texts of one head in as many units as their length asks for, of about the same length.
void add_units(std::vector<Unit>& units, const std::vector<const Text*>& texts) {
  size_t bytes = 0;
  for (const Text* text : texts)
    bytes += text->body.size();
  const size_t count = bytes / kUnitBytes + 1;
  const size_t each = bytes / count + 1;
  std::vector<const Text*> part;
  size_t length = 0;
  for (const Text* text : texts) {
    if (!part.empty() && length + text->body.size() > each) {
      units.push_back(unit_of(part));
      part.clear();
      length = 0;
    }
    part.push_back(text);
    length += text->body.size();
  }
  if (!part.empty()) units.push_back(unit_of(part));
}
}  // namespace

std::vector<Unit> units_of(const LaunchList& list, bool marked) {
  const auto texts = texts_of(list, marked);
  std::map<std::string, std::vector<const Text*>> by_head;
  std::vector<Unit> units;
  for (const Text& text : texts)
    if (text.alone)
      units.push_back(unit_of({&text}));
    else
      by_head[text.head].push_back(&text);
  for (const auto& [head, alike] : by_head)
    add_units(units, alike);
  std::ranges::sort(units, {}, [](const Unit& unit) { return unit.kernels.front(); });
  return units;
}
}  // namespace warploom::runtime
