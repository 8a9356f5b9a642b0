// The passes of a row reduction, and what each of them keeps for those behind it.
#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <vector>
#include "base/casts.h"
#include "loopnest/loop_nest.h"
#include "loopnest/row_reader.h"
#include "loopnest/row_reduction.h"

namespace warploom::loopnest {
namespace {
using TermSets = std::map<int, int>;  // terms, each with the number of its set

class PassPlanner {
 public:
  explicit PassPlanner(RowReduction& rows) : rows_(rows) {}

  void plan() {
    group_reductions();
    find_first_passes();
    for (size_t p = 0; p + 1 < rows_.passes.size(); ++p) {
      const TermSets before = p == 0 ? TermSets{} : rows_.passes[p - 1].kept;
      rows_.passes[p].kept = assign_sets(p, kept_behind(p), before);
    }
  }

 private:
  void group_reductions() {
    for (size_t t = 0; t < rows_.terms.size(); ++t) {
      const RowTerm& term = rows_.terms[t];
      if (term.kind != Kind::reduce) continue;
      const size_t pass = as_size(term.pass) - 1;
      rows_.passes.resize(std::max(rows_.passes.size(), pass + 1));
      rows_.passes[pass].reduces.push_back(as_int(t));
    }
    rows_.passes.emplace_back();
  }

  void find_first_passes() {
    first_.assign(rows_.terms.size(), rows_.passes.size());
    for (size_t p = 0; p < rows_.passes.size(); ++p)
      for (const int root : rows_.passes[p].roots(rows_))
        mark_computed(root, p);
  }

  void mark_computed(int term, size_t pass) {
    size_t& first = first_[as_size(term)];
    if (!rows_.term(term).along_row || first <= pass) return;
    first = pass;
    for (const int operand : rows_.term(term).operands)
      mark_computed(operand, pass);
  }

  // The terms that passes behind `pass` go on from: computed by it or before it.
  std::set<int> kept_behind(size_t pass) const {
    std::set<int> kept;
    std::set<int> seen;
    for (size_t later = pass + 1; later < rows_.passes.size(); ++later)
      for (const int root : rows_.passes[later].roots(rows_))
        add_known(root, pass, kept, seen);
    return kept;
  }

  void add_known(int term, size_t pass, std::set<int>& kept, std::set<int>& seen) const {
    const RowTerm& of = rows_.term(term);
    if (!of.along_row || of.kind == Kind::index || !seen.insert(term).second) return;
    if (first_[as_size(term)] <= pass) {
      kept.insert(term);
      return;
    }
    for (const int operand : of.operands)
      add_known(operand, pass, kept, seen);
  }

  // Each term stays in the set that it had; a new one takes the first set that is free, or whose
  // term nobody reads any more, but perhaps it.
  TermSets assign_sets(size_t pass, const std::set<int>& kept, const TermSets& before) const {
    constexpr int kNone = -1;
    TermSets sets;
    for (const int term : kept) {
      const auto old = before.find(term);
      sets[term] = old == before.end() ? kNone : old->second;
    }
    auto computed = rows_.passes[pass].roots(rows_);
    computed.insert(computed.end(), kept.begin(), kept.end());
    std::set<int> at_hand;
    for (const auto& [term, set] : before)
      at_hand.insert(term);
    const auto is_taken = [&](int set, int term) {
      const auto holds = [&](const auto& other) {
        return other.second == set && other.first != term;
      };
      return std::ranges::any_of(sets, holds) ||
             is_read_later(set, term, before, computed, at_hand);
    };
    for (auto& [term, set] : sets) {
      at_hand.insert(term);
      if (set != kNone) continue;
      int free = 0;
      while (is_taken(free, term))
        ++free;
      set = free;
    }
    return sets;
  }

  // Whether what is computed behind `term` reads a term that the pass before left in a set.
  bool is_read_later(int set, int term, const TermSets& before, const std::vector<int>& computed,
                     const std::set<int>& at_hand) const {
    for (const auto& [old, its_set] : before) {
      if (its_set != set) continue;
      for (const int later : computed) {
        std::set<int> seen;
        if (later > term && reads(later, old, at_hand, seen)) return true;
      }
    }
    return false;
  }

  // Whether computing `from` reads `what`, terms in `at_hand` being known.
  bool reads(int from, int what, const std::set<int>& at_hand, std::set<int>& seen) const {
    if (from == what) return true;
    if (!seen.insert(from).second || at_hand.contains(from)) return false;
    if (rows_.term(from).kind == Kind::reduce) return false;
    return std::ranges::any_of(rows_.term(from).operands,
                               [&](int operand) { return reads(operand, what, at_hand, seen); });
  }

  RowReduction& rows_;
  std::vector<size_t> first_;  // by term: the pass that computes it; beyond all of them for none
};
}  // namespace

void find_row_passes(RowReduction& rows) {
  PassPlanner(rows).plan();
}
}  // namespace warploom::loopnest
