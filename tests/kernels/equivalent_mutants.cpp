#include "equivalent_mutants.h"
#include <algorithm>
#include <cctype>
#include <cstddef>
#include <functional>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>
#include "kernels/mutants.h"

namespace warploom::test {
namespace {
using Lines = std::vector<std::string>;

Lines lines_of(const std::string& text) {
  Lines lines = {""};  // so that line 1 has index 1
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);)
    lines.push_back(line);
  return lines;
}

bool has(const std::string& line, const char* part) {
  return line.find(part) != std::string::npos;
}

size_t indent(const std::string& line) {
  return line.find_first_not_of(' ');
}

size_t at(const Mutant& m) {
  return static_cast<size_t>(m.line);
}

// The first line of the block that holds line i.
size_t head_of(const Lines& lines, size_t i) {
  size_t head = i;
  do
    --head;
  while (head > 0 && (lines[head].empty() || indent(lines[head]) >= indent(lines[i])));
  return head;
}

bool in_thread_zero(const Lines& lines, const Mutant& m) {
  for (size_t i = at(m); i > 0 && indent(lines[i]) > 0; i = head_of(lines, i))
    if (has(lines[i], "if (t == 0) {")) return true;
  return false;
}

// Uses of the tensor that a mutant's line names, comments aside.
std::function<bool(const std::string&)> uses_of_its_tensor(const Mutant& m) {
  std::smatch found;
  std::regex_search(m.text, found, std::regex(R"(wl::at\((\w+), 0\))"));
  return [use = std::regex("\\b" + found[1].str() + "\\b")](const std::string& line) {
    return !has(line, "//") && std::regex_search(line, use);
  };
}

// The next use of the accumulators, in the loop's next round and after the loop, is a
// wgmma_fence_regs again.
bool next_use_is_pinned(const Lines& lines, const Mutant& m) {
  const auto used = uses_of_its_tensor(m);
  const size_t head = head_of(lines, at(m));
  auto pinned = [&](size_t i) {
    while (i < lines.size() && !used(lines[i]))
      ++i;
    return i < lines.size() && i != at(m) && has(lines[i], "wgmma_fence_regs");
  };
  return has(lines[head], "for (int k") && pinned(head) && pinned(at(m) + 1);
}

// The last use of the accumulators before it, in the same block, is a wgmma_fence_regs too.
bool pinned_already(const Lines& lines, const Mutant& m) {
  size_t i = at(m) - 1;
  while (i > head_of(lines, at(m)) && !uses_of_its_tensor(m)(lines[i]))
    --i;
  return i > head_of(lines, at(m)) && has(lines[i], "wgmma_fence_regs");
}

// Nothing but the declaration uses the accumulators before this loop, which no other is around, and
// its turns end with a wgmma_fence_regs.
bool first_used_here(const Lines& lines, const Mutant& m) {
  const auto used = uses_of_its_tensor(m);
  const size_t head = head_of(lines, at(m));
  size_t end = at(m);
  while (end < lines.size() && (lines[end].empty() || indent(lines[end]) > indent(lines[head])))
    ++end;
  while (!used(lines[--end])) {}
  bool loops = false;
  for (size_t i = head_of(lines, head); i > 0 && indent(lines[i]) > 0; i = head_of(lines, i))
    loops |= has(lines[i], "for (");
  return !loops && has(lines[end], "wgmma_fence_regs") &&
         std::none_of(lines.begin(), lines.begin() + static_cast<ptrdiff_t>(head),
                      [&](const std::string& line) { return used(line) && !has(line, "WL_REG("); });
}

// The next use of the accumulators, in the same block, is a wgmma_fence_regs again.
bool pinned_next(const Lines& lines, const Mutant& m) {
  const auto used = uses_of_its_tensor(m);
  size_t i = at(m) + 1;
  while (i < lines.size() && !lines[i].empty() && indent(lines[i]) >= indent(lines[at(m)]) &&
         !used(lines[i]))
    ++i;
  return i < lines.size() && indent(lines[i]) == indent(lines[at(m)]) && used(lines[i]) &&
         has(lines[i], "wgmma_fence_regs");
}

// Earlier in this round all groups before this round's were waited for.
bool waited_this_round(const Lines& lines, const Mutant& m) {
  int commits = 0;
  for (size_t i = at(m) - 1; i > head_of(lines, at(m)); --i) {
    commits += has(lines[i], "wgmma_commit");
    if (indent(lines[i]) == indent(lines[at(m)]) && has(lines[i], "wgmma_wait<0>"))
      return commits <= 1;
  }
  return false;
}

// A stage is handed back when the next one has been read, behind a sync_warp of that one's.
bool synced_with_the_next_stage(const Lines& lines, const Mutant& m) {
  const size_t head = head_of(lines, at(m));
  int others = 0;
  for (size_t i = head + 1;
       i < lines.size() && (lines[i].empty() || indent(lines[i]) > indent(lines[head])); ++i)
    others += i != at(m) && has(lines[i], "wl::sync_warp()");
  return others > 0 && has(lines[at(m) + 1], "_pending) {");
}

// The first stage of its pipeline, outside loops.
bool first_stage(const Lines& lines, const Mutant& m) {
  for (size_t i = at(m); i > 0 && indent(lines[i]) > 0; i = head_of(lines, i))
    if (has(lines[i], "for (")) return false;
  size_t consume = at(m);
  while (consume > 0 && !has(lines[consume], "// consume "))
    --consume;
  size_t role = consume;
  while (role > 0 && !has(lines[role], "{  // "))
    --role;
  return role > 0 &&
         std::count(lines.begin() + static_cast<ptrdiff_t>(role),
                    lines.begin() + static_cast<ptrdiff_t>(consume), lines[consume]) == 0;
}

// So that no stage before it is handed back.
bool none_pending(const Lines& lines, const Mutant& m) {
  const size_t pending = has(lines[at(m) + 2], "_pending) {") ? at(m) + 2 : head_of(lines, at(m));
  return has(lines[pending], "_pending) {") && first_stage(lines, m);
}

bool nothing_follows(const Lines& lines, const Mutant& m) {
  return std::all_of(lines.begin() + m.line + 1, lines.end(), [](const std::string& line) {
    return line.find_first_not_of(" }") == line.npos || has(line, "cluster_sync") ||
           has(line, "WL_EXPORT");
  });
}

bool no_copies(const Lines& lines, const Mutant&) {
  return std::none_of(lines.begin(), lines.end(),
                      [](const std::string& line) { return has(line, "wl::cp_async<"); });
}

// Turns of the loop over i0 that is next around line i; 1 where there is none.
long turns_of(const Lines& lines, size_t i) {
  static const std::regex loop(R"(for \(int i0 = 0; i0 < (\d+); \+\+i0\))");
  for (size_t head = head_of(lines, i); head > 0 && indent(lines[head]) > 0;
       head = head_of(lines, head)) {
    std::smatch found;
    if (std::regex_search(lines[head], found, loop)) return std::stol(found[1]);
  }
  return 1;
}

// Every access to the pipeline's stages has one address within its stage, or lies whole steps
// further on among those that the same thread copies: a thread reads what it copied itself.
bool stages_of_one_thread(const Lines& lines, const Mutant&) {
  static const std::regex access(R"(\brow \+ (?:pipe_(?:write|read) \* \d+)?([^,;]*))");
  static const std::regex piece(R"((.* i0 \* (\d+))(?: \+ (\d+))?)");
  std::set<std::string> addresses;
  // bytes from the address on
  long copied = 0;
  long used = 0;
  for (size_t i = 1; i < lines.size(); ++i) {
    std::smatch found;
    if (!has(lines[i], "wl::") || !std::regex_search(lines[i], found, access)) continue;
    std::string address = found[1].str();
    if (has(lines[i], "ld_shared")) address = address.substr(0, address.rfind(')'));
    if (std::smatch steps; std::regex_match(address, steps, piece)) {
      const long step = std::stol(steps[2]);
      const long offset = steps[3].matched ? std::stol(steps[3]) : 0;
      long& end = has(lines[i], "cp_async") && offset == 0 ? copied : used;
      if (offset % step == 0) {
        end = std::max(end, offset + step * turns_of(lines, i));
        address = steps[1].str();
      }
    }
    addresses.insert(address);
  }
  return addresses.size() == 1 && used <= copied;
}

// The barrier stands before an access to `kept`, all of which have one address.
bool words_of_one_thread(const Lines& lines, const Mutant& m) {
  const std::regex access(R"(\b(kept \+ .*?)(, wl::at.*)?\);$)");
  std::set<std::string> addresses;
  std::smatch found;
  for (const std::string& line : lines)
    if (has(line, "_shared<") && std::regex_search(line, found, access)) addresses.insert(found[1]);
  size_t next = at(m) + 1;
  while (next < lines.size() && !has(lines[next], "_shared"))
    ++next;
  return addresses.size() == 1 && next < lines.size() && has(lines[next], "kept");
}

// Another cluster barrier is passed between the kernel's begin and its first access to another
// block.
bool another_cluster_barrier(const Lines& lines, const Mutant& m) {
  size_t barriers = 0;
  for (size_t i = 1; i < lines.size() && !has(lines[i], "wl::mapa"); ++i)
    barriers += i != at(m) && has(lines[i], "wl::cluster_sync");
  return has(m.text, "has started") && barriers > 0;
}

// There are waits for flags, and all ask for one signal.
bool waits_for_one(const Lines& lines, const Mutant&) {
  const auto waits = [](const std::string& line) { return has(line, "wl::wait_flag"); };
  return std::ranges::any_of(lines, waits) &&
         std::ranges::all_of(
             lines, [&](const std::string& line) { return !waits(line) || has(line, ", 1);"); });
}

size_t next_line(const Lines& lines, size_t from, const char* part) {
  while (from < lines.size() && !has(lines[from], part))
    ++from;
  return from;
}

// Another commit comes before the thread's next wait.
bool committed_later(const Lines& lines, const Mutant& m) {
  return next_line(lines, at(m) + 1, "wl::bulk_commit") <
         next_line(lines, at(m) + 1, "wl::bulk_wait");
}

// Between the last commit and the end of the text stands another wait for all of it.
bool waited_before(const Lines& lines, const Mutant& m) {
  size_t wait = 0;
  for (size_t i = 1; i < lines.size(); ++i) {
    if (has(lines[i], "wl::bulk_commit")) wait = 0;
    if (i != at(m) && has(lines[i], "wl::bulk_wait<0>")) wait = i;
  }
  return wait > 0 && wait < at(m);
}

// Of the buffers that the kernel reads, too, the thread that signals behind this barrier stores
// all, or TMA for it.
bool signals_its_own_stores(const Lines& lines, const Mutant& m) {
  const auto buffer = [](const std::string& line, const char* call) {
    std::smatch found;
    return std::regex_search(line, found,
                             std::regex(std::string(call) + R"(<\d+>\((?:wl::at\(.*?\), )?(\w+))"))
               ? found[1].str()
               : "";
  };
  std::set<std::string> loaded;
  for (const std::string& line : lines)
    loaded.insert(buffer(line, "wl::ld_global"));
  for (size_t i = 1; i < lines.size(); ++i)
    if (has(lines[i], "wl::st_global<") && loaded.contains(buffer(lines[i], "wl::st_global")) &&
        !has(lines[i - 1], "if (t == 0)"))
      return false;
  return next_line(lines, at(m), "wl::signal_flag") <= at(m) + 3;
}

bool last_copies(const Lines& lines, const Mutant& m) {
  return std::none_of(lines.begin() + m.line, lines.end(),
                      [](const std::string& line) { return has(line, "// consume"); });
}

// No address that is swizzled here has the highest bit that moves others: it is a sum of digits of
// the thread's number and loop variables, each times a step, and too small.
bool lacks_the_bit(const Lines& lines, const Mutant& m) {
  static const std::regex call(R"(wl::swizzle<(\d+), (\d+), (\d+)>\(([^()]*)\))");
  std::smatch found;
  if (!std::regex_search(m.text, found, call)) return false;
  const long bit = std::stol(found[1]) + std::stol(found[2]) + std::stol(found[3]) - 1;
  long most = 0;
  long threads = 1024;
  for (const std::string& line : lines)
    if (std::smatch kernel;
        std::regex_search(line, kernel, std::regex(R"(^WL_KERNEL\w*\(\w+, (\d+),)")))
      threads = std::stol(kernel[1]);
  std::string rest = found[4].str() + " + ";
  for (size_t end = rest.find(" + "); end != rest.npos;
       rest = rest.substr(end + 3), end = rest.find(" + ")) {
    const std::string part = rest.substr(0, end);
    const std::string name = part.substr(0, part.find(" * "));
    const long times = has(part, " * ") ? std::stol(part.substr(part.find(" * ") + 3)) : 1;
    std::smatch digit;
    long greatest = -1;
    if (std::isdigit(static_cast<unsigned char>(name[0])))
      greatest = std::stol(name);
    else if (std::regex_search(name, digit, std::regex(R"(_mod(\d+)$)")))
      greatest = std::stol(digit[1]) - 1;
    else if (std::regex_search(name, digit, std::regex(R"(^t_div(\d+)$)")))
      greatest = threads / std::stol(digit[1]) - 1;
    const std::regex loop("for \\(int " + name + " = 0; " + name + R"( < (\d+);)");
    for (size_t head = head_of(lines, at(m)); greatest < 0 && head > 0 && indent(lines[head]) > 0;
         head = head_of(lines, head))
      if (std::regex_search(lines[head], digit, loop)) greatest = std::stol(digit[1]) - 1;
    if (greatest < 0) return false;
    most += greatest * times;
  }
  return most < 1L << bit;
}

struct Equivalent {
  // a call that begins so; a change, or "" any
  const char* call;
  const char* change;
  bool (*proof)(const Lines&, const Mutant&);
  const char* reason;
};

const Equivalent kEquivalent[] = {
    {"mbarrier_wait", "by one thread", in_thread_zero,
     "only thread 0 comes here: the same program"},
    {"wgmma_fence_regs", "removed", next_use_is_pinned,
     "only wgmma uses the accumulators from here to the next wgmma_fence_regs: there is no access "
     "to keep in place"},
    {"wgmma_fence_regs", "removed", first_used_here,
     "only wgmma has used the accumulators, which begin with it"},
    {"wgmma_fence_regs", "removed", pinned_already,
     "only wgmma has used the accumulators since the last wgmma_fence_regs"},
    {"wgmma_fence_regs", "removed", pinned_next,
     "only wgmma uses the accumulators from here to the next wgmma_fence_regs: there is no access "
     "to keep in place"},
    {"wgmma_wait", "", waited_this_round,
     "the stage that is handed back here was waited for earlier in the round"},
    {"wgmma_commit", "behind the wait", waited_this_round,
     "the stage that is handed back here was waited for earlier in the round"},
    {"sync_warp", "removed", synced_with_the_next_stage,
     "a stage is handed back behind the sync_warp of the next one"},
    {"phase", "never flips", first_stage, "the first of several stages"},
    {"fence_async_shared", "", none_pending, "no stage has been read before"},
    {"mbarrier_arrive", "", none_pending, "no stage has been read before"},
    {"bulk_wait", "for the reads alone", nothing_follows,
     "a block may end once the engine has read its shared memory; the writes complete before the "
     "grid does"},
    {"bulk_commit", "removed", committed_later,
     "a later group of the same thread holds the stores"},
    {"bulk_wait", "", waited_before, "the signal's wait has covered every store"},
    {"sync_named", "", signals_its_own_stores,
     "the thread that signals has made all the stores itself"},
    {"sync_threads", "", signals_its_own_stores,
     "the thread that signals has made all the stores itself"},
    {"cp_async", "", no_copies,
     "the operands are unaligned and go through registers: there is no cp.async to wait for"},
    {"sync_threads", "", stages_of_one_thread,
     "each thread reads the pipeline's words that it copied itself"},
    {"cp_async_wait", "behind the barrier", last_copies, "no stage is read from here on"},
    {"cp_async_wait", "behind the barrier", stages_of_one_thread,
     "each thread reads the pipeline's words that it copied itself, and waits for its own copies "
     "before that"},
    {"sync_threads", "", words_of_one_thread,
     "every access has the same address: each thread meets its own words alone"},
    {"signal_flag", "one more", waits_for_one,
     "a flag that holds 2 says no more than one that holds 1"},
    {"swizzle", "a bit fewer", lacks_the_bit, "no address that is swizzled here has the bit"},
    {"cluster_sync", "", another_cluster_barrier,
     "another cluster barrier stands before the first access to another block"},
};
}  // namespace

std::string why_equivalent(const std::string& text, const Mutant& mutant) {
  const Lines lines = lines_of(text);
  for (const Equivalent& e : kEquivalent)
    if (mutant.call.rfind(e.call, 0) == 0 && (!*e.change || mutant.change == e.change) &&
        e.proof(lines, mutant))
      return e.reason;
  return "";
}
}  // namespace warploom::test
