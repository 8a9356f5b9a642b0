#include "mutants.h"
#include <fmt/ranges.h>
#include <algorithm>
#include <cctype>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include "codegen/launch_list.h"

int wl_mutant = 0;

namespace warploom::test {
namespace {
// What a call may become. $0 is the call, $1 … its arguments, $@ all of them, $+ those from the
// fifth on, $N its template argument.
struct Change {
  const char* call;
  const char* name;
  const char* becomes;
};

constexpr const char* kNothing = "(void)0";
constexpr const char* kOneThread = "(wl::thread() % 128 == 0 ? $0 : (void)0)";
const Change kChanges[] = {
    {"sync_threads", "removed", kNothing},
    {"sync_threads", "of warps alone", "wl::sync_warp()"},
    {"sync_named", "removed", kNothing},
    {"sync_named", "of warps alone", "wl::sync_warp()"},
    {"sync_named", "for a warp fewer", "wl::sync_named($1, $2 - 32)"},
    {"sync_warp", "removed", kNothing},
    {"cluster_sync", "removed", kNothing},
    {"cluster_sync", "of blocks alone", "wl::sync_threads()"},
    {"fence_async_shared", "removed", kNothing},
    {"fence_async_shared", "by one thread", kOneThread},
    {"fence_mbarrier_init", "removed", kNothing},
    {"wgmma_fence", "removed", kNothing},
    {"wgmma_fence_regs", "removed", kNothing},
    {"wgmma_commit", "removed", kNothing},
    {"wgmma_wait", "removed", kNothing},
    {"wgmma_wait", "leaves a group more", "wl::wgmma_wait<$N + 1>()"},
    {"cp_async_commit", "removed", kNothing},
    {"cp_async_wait", "removed", kNothing},
    {"cp_async_wait", "leaves a group more", "wl::cp_async_wait<$N + 1>()"},
    {"cp_async_wait", "by one thread", kOneThread},
    {"bulk_commit", "removed", kNothing},
    {"bulk_wait", "removed", kNothing},
    {"bulk_wait", "leaves a group more", "wl::bulk_wait<$N + 1>()"},
    {"bulk_wait", "for the reads alone", "wl::bulk_wait_read<$N>()"},
    {"bulk_wait_read", "removed", kNothing},
    {"bulk_wait_read", "leaves a group more", "wl::bulk_wait_read<$N + 1>()"},
    {"mbarrier_init", "removed", kNothing},
    {"mbarrier_init", "count + 1", "wl::mbarrier_init($1, $2 + 1)"},
    {"mbarrier_init", "count - 1", "wl::mbarrier_init($1, $2 - 1)"},
    {"mbarrier_wait", "removed", kNothing},
    {"mbarrier_wait", "by one thread", kOneThread},
    {"mbarrier_wait", "of the other parity", "wl::mbarrier_wait($1, ($2) ^ 1)"},
    {"mbarrier_arrive", "removed", kNothing},
    {"mbarrier_arrive", "twice", "($0, $0)"},
    {"mbarrier_arrive_expect_tx", "removed", kNothing},
    {"mbarrier_arrive_expect_tx", "twice", "($0, $0)"},
    {"mbarrier_arrive_expect_tx", "without bytes", "wl::mbarrier_arrive($1)"},
    {"mbarrier_arrive_expect_tx", "16 bytes more", "wl::mbarrier_arrive_expect_tx($1, $2 + 16)"},
    {"mbarrier_arrive_expect_tx", "16 bytes fewer", "wl::mbarrier_arrive_expect_tx($1, $2 - 16)"},
    {"mbarrier_wait_cluster", "removed", kNothing},
    {"mbarrier_wait_cluster", "of the other parity", "wl::mbarrier_wait_cluster($1, ($2) ^ 1)"},
    {"mbarrier_wait_cluster", "of the block alone", "wl::mbarrier_wait($@)"},
    {"mbarrier_arrive_cluster", "removed", kNothing},
    {"mbarrier_arrive_cluster", "twice", "($0, $0)"},
    {"mbarrier_arrive_cluster", "at the block's own", "wl::mbarrier_arrive($1)"},
    {"st_async", "removed", kNothing},
    {"st_async", "twice", "($0, $0)"},
    {"st_async", "to the block's own",
     "wl::st_async<$N>(wl::mapa($1, wl::cluster_rank()), $2, wl::mapa($3, wl::cluster_rank()))"},
    {"tma_load_multicast", "removed", kNothing},
    {"tma_load_multicast", "to a block fewer",
     "wl::tma_load_multicast($1, $2, $3, ($4) & (($4) - 1), $+)"},
    {"tma_load_multicast", "to the block alone", "wl::tma_load($1, $2, $3, $+)"},
    {"tma_load_multicast", "to a part twice", "($0, $0)"},
    {"tma_reduce_add", "stores", "wl::tma_store($@)"},
    {"red_add", "stores", "wl::st_global<$N>($@)"},
    {"signal_flag", "removed", kNothing},
    {"signal_flag", "one more", "wl::signal_flag($1, $2 + 1)"},
    {"griddepcontrol_wait", "removed", kNothing},
    {"wait_flag", "removed", kNothing},
    {"wait_flag", "for one fewer", "wl::wait_flag($1, $2 - 1)"},
    {"wait_flag", "for one more", "wl::wait_flag($1, $2 + 1)"},
    {"swizzle", "a bit fewer", "wl::swizzle<$N - 1, $M>($1)"},
    {"smem_descriptor", "of another swizzle", "wl::smem_descriptor($1, $2, $3, $4 % 3 + 1)"},
};

// What may come too late: the call goes, and comes again behind the next call of `behind`.
struct Move {
  const char* call;
  const char* behind;
  const char* name;
};

const Move kMoves[] = {
    {"fence_async_shared", "sync_named", "behind the barrier"},
    {"cp_async_wait", "sync_threads", "behind the barrier"},
    {"bulk_wait_read", "sync_named", "behind the barrier"},
    {"wgmma_wait", "mbarrier_arrive", "behind the arrival"},
    {"wgmma_commit", "wgmma_wait", "behind the wait"},
    {"mbarrier_wait", "wgmma_commit", "behind the commit"},
    {"mbarrier_wait", "tma_load", "behind the load"},
    {"mbarrier_wait_cluster", "tma_load_multicast", "behind the load"},
    {"sync_threads", "signal_flag", "behind the signal"},
    {"sync_named", "signal_flag", "behind the signal"},
};

struct Call {
  size_t end = 0;  // behind the closing parenthesis
  // template arguments: the first, the others
  std::string name;
  std::string first;
  std::string rest;
  std::vector<std::string> args;
};

bool in_name(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
}

// Splits text[at…] at the commas of its bracket, which opens at `at`; returns the place behind the
// bracket's end.
size_t split(const std::string& text, size_t at, std::vector<std::string>& parts) {
  const std::string_view open = text[at] == '<' ? "<([" : "([";
  const std::string_view close = text[at] == '<' ? ">)]" : ")]";
  int depth = 0;
  std::string part;
  for (; at < text.size(); ++at) {
    const char c = text[at];
    if (open.find(c) != open.npos) {
      if (depth++ == 0) continue;
    } else if (close.find(c) != close.npos) {
      if (--depth == 0) break;
    } else if (c == ',' && depth == 1) {
      parts.push_back(std::exchange(part, ""));
      continue;
    }
    part += c;
  }
  if (!part.empty()) parts.push_back(part);
  return at + 1;
}

Call call_at(const std::string& text, size_t at) {
  Call call;
  size_t end = at + 4;
  while (in_name(text[end]))
    ++end;
  call.name = text.substr(at + 4, end - at - 4);
  if (text[end] == '<') {
    std::vector<std::string> parts;
    const size_t begin = end;
    end = split(text, end, parts);
    call.first = parts[0];
    const size_t comma = text.find(',', begin);
    if (comma < end) call.rest = text.substr(comma + 1, end - comma - 2);
  }
  call.end = text[end] == '(' ? split(text, end, call.args) : end;
  return call;
}

std::string filled(std::string_view pattern, const Call& call, const std::string& whole) {
  std::string out;
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] != '$') {
      out += pattern[i];
      continue;
    }
    const char c = pattern[++i];
    if (c == 'N')
      out += call.first;
    else if (c == 'M')
      out += call.rest;
    else if (c == '0')
      out += whole;
    else if (c == '@')
      out += fmt::format("{}", fmt::join(call.args, ","));
    else if (c == '+')
      out += fmt::format("{}", fmt::join(call.args.begin() + 4, call.args.end(), ","));
    else
      out += call.args[static_cast<size_t>(c - '1')];
  }
  return out;
}

class Planter {
 public:
  Planter(const Kernel& kernel, std::vector<Mutant>& mutants)
      : kernel_(kernel), mutants_(mutants) {}

  std::string planted() {
    const std::string& text = kernel_.source;
    std::string out;
    size_t at = 0;
    for (size_t next; (next = text.find("wl::", at)) != std::string::npos;) {
      out += text.substr(at, next - at);
      const Call call = call_at(text, next);
      const std::string whole = text.substr(next, call.end - next);
      std::string choice;
      for (const Change& c : kChanges)
        if (call.name == c.call)
          choice += fmt::format("wl_mutant == {} ? {} : ", add(next, c.call, c.name),
                                filled(c.becomes, call, whole));
      for (const Move& m : kMoves)
        if (call.name == m.call && next_call(m.behind, call.end) < next_call(m.call, call.end)) {
          moved_.push_back({add(next, m.call, m.name), m.behind, whole});
          choice += fmt::format("wl_mutant == {} ? (void)0 : ", moved_.back().number);
        }
      for (auto m = moved_.begin(); m != moved_.end();) {
        if (call.name != m->behind) {
          ++m;
          continue;
        }
        choice += fmt::format("wl_mutant == {} ? ({}, {}) : ", m->number, whole, m->call);
        m = moved_.erase(m);
      }
      if (!choice.empty()) {
        out += "(" + choice + whole + ")";
        at = call.end;
      } else {  // its arguments may hold such calls
        out += "wl::";
        at = next + 4;
      }
    }
    out += text.substr(at);
    return flips(out);
  }

 private:
  size_t next_call(const std::string& name, size_t from) const {
    const std::string& text = kernel_.source;
    do
      from = text.find("wl::" + name, from + 1);
    while (from != std::string::npos && in_name(text[from + 4 + name.size()]));
    return from;
  }

  // The parity that a ring's turn flips. Its lines are counted in `text`, whose lines are the
  // kernel's.
  std::string flips(const std::string& text) {
    constexpr std::string_view kFlip = "_phase ^= 1";
    std::string out;
    size_t at = 0;
    for (size_t next; (next = text.find(kFlip, at)) != std::string::npos;
         at = next + kFlip.size()) {
      const size_t here = kernel_.source.find(kFlip, flip_);
      flip_ = here + 1;
      out += text.substr(at, next - at) +
             fmt::format("_phase ^= wl_mutant != {}", add(here, "phase", "never flips"));
    }
    return declared(out + text.substr(at));
  }

  static std::string declared(std::string text) {
    const std::string include = "#include \"wl.h\"\n";
    text.insert(text.find(include) + include.size(),
                "extern \"C\" int wl_mutant;");  // on a line that was empty
    return text;
  }

  int add(size_t at, const char* call, const char* change) {
    const std::string& text = kernel_.source;
    const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<ptrdiff_t>(at), '\n');
    const size_t begin = text.find_first_not_of(' ', text.rfind('\n', at) + 1);
    mutants_.push_back({static_cast<int>(mutants_.size()) + 1, kernel_.name, static_cast<int>(line),
                        call, change, text.substr(begin, text.find('\n', at) - begin)});
    return mutants_.back().number;
  }

  struct Moved {
    int number;
    std::string behind;
    std::string call;
  };

  const Kernel& kernel_;
  std::vector<Mutant>& mutants_;
  std::vector<Moved> moved_;  // calls that wait for the place they come again
  size_t flip_ = 0;
};
}  // namespace

std::vector<Mutant> plant_mutants(LaunchList& list) {
  std::vector<Mutant> mutants;
  for (Kernel& kernel : list.kernels)
    kernel.source = Planter(kernel, mutants).planted();
  return mutants;
}
}  // namespace warploom::test
