#include "llm/prompt.h"
#include <fmt/format.h>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>
#include "base/hash.h"
#include "base/quoted.h"
#include "base/rendered.h"
#include "llm/exchange.h"

namespace warploom::llm {
namespace {
using nlohmann::json;

constexpr size_t kMostProblem = 16 << 10;  // bytes
constexpr size_t kMostSource = 48 << 10;
constexpr size_t kMostLine = 1 << 10;

// As it may stand in a question: visible, and not longer than that.
std::string shown(const std::string& text, size_t most) {
  std::string visible = printable_lines(text);
  if (visible.size() <= most) return visible;
  size_t end = most;
  while (end > 0 && (static_cast<unsigned char>(visible[end]) & 0xc0) == 0x80)
    --end;  // not within a character
  return visible.substr(0, end) + "\n… cut here";
}

std::string line_of(const std::string& text) {
  std::string line = printable(text);
  return line.size() <= kMostLine ? line : shown(line, kMostLine).substr(0, kMostLine) + "…";
}

json buffers_of(const KernelPrompt& prompt) {
  json out = json::array();
  for (const BufferRow& row : prompt.buffers)
    out.push_back({{"name", line_of(row.name)},
                   {"type", row.type},
                   {"shape", row.shape},
                   {"role", row.role}});
  return out;
}

// A mark that nothing of the data holds.
std::string fence_for(const std::string& data) {
  for (size_t i = 0;; ++i) {
    std::string fence = "=====" + hash_hex(fmt::format("{} {}", i, data)).substr(0, 12);
    if (data.find(fence) == data.npos) return fence;
  }
}
}  // namespace

Question question_of(const KernelPrompt& prompt) {
  json record = {{"language", prompt.language},
                 {"gpu", prompt.gpu},
                 {"problem", shown(prompt.problem, kMostProblem)},
                 {"buffers", buffers_of(prompt)},
                 {"track", prompt.track},
                 {"tolerance", prompt.tolerance},
                 {"target", line_of(prompt.target)},
                 {"bound", line_of(prompt.bound)},
                 {"reference", line_of(prompt.reference)},
                 {"source", shown(prompt.source, kMostSource)},
                 {"standing", line_of(prompt.standing)},
                 {"has_tried", !prompt.tried.empty()},
                 {"tried", json::array()},
                 {"has_ideas", !prompt.ideas.empty()},
                 {"ideas", json::array()},
                 {"idea", line_of(prompt.idea)},
                 {"task", line_of(prompt.task)}};
  for (const TriedRow& row : prompt.tried)
    record["tried"].push_back(
        {{"sentence", line_of(row.sentence)}, {"verdict", line_of(row.verdict)}});
  for (const std::string& idea : prompt.ideas)
    record["ideas"].push_back(line_of(idea));
  for (const char* optional : {"bound", "reference", "source", "standing", "idea"})
    if (record[optional].get_ref<const std::string&>().empty()) record[optional] = false;
  record["fence"] = fence_for(record.dump(-1, ' ', false, json::error_handler_t::replace));
  Question out;
  out.messages = {{"system", rendered(resource("llm/system.txt"), record)},
                  {"user", rendered(resource("llm/question.txt"), record)}};
  out.purpose = prompt.task;
  if (!prompt.idea.empty()) out.purpose += " " + line_of(prompt.idea);
  return out;
}
}  // namespace warploom::llm
