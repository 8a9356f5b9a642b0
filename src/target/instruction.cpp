#include "target/instruction.h"

#include <fmt/format.h>

#include "target/rows.h"

namespace warploom::target {
namespace {

Status check_operand(const Instruction& row, const layout::TvLayout& tv, char operand) {
  const bool covers = tv.threads() == row.threads && tv.is_exact() && (operand != 'c' || tv.is_injective());
  if (covers) return ok();
  return fail({ErrorCode::kInternal,
               fmt::format("row {}: the layout of operand {} does not cover its tile", row.name, operand),
               std::string(row.name), fmt::format("{} threads, every element equally often", row.threads),
               layout::to_string(tv), "mend the row"});
}

}  // namespace

const std::vector<Instruction>& instructions_of(const std::string& arch) {
  static const std::vector<Instruction> none;
  static const std::vector<Instruction> sm80 = sm80_rows();
  static const std::vector<Instruction> sm90a = [] {
    auto rows = sm90a_rows();
    const auto older = sm80_rows();
    rows.insert(rows.end(), older.begin(), older.end());
    return rows;
  }();
  if (arch == "sm_90a") return sm90a;
  if (arch == "sm_80" || arch == "sm_89") return sm80;
  return none;
}

Status check(const Instruction& row) {
  const bool is_matrix = row.m > 0;
  if (is_matrix && !row.shared_operands) {
    WARPLOOM_CHECK(check_operand(row, row.a, 'a'));
    WARPLOOM_CHECK(check_operand(row, row.b, 'b'));
  }
  if (is_matrix) WARPLOOM_CHECK(check_operand(row, row.c, 'c'));
  if (!is_matrix && row.method != Method::tensor_copy && row.bytes.empty())
    return fail({ErrorCode::kInternal, fmt::format("row {} has no width", row.name), std::string(row.name), "a width",
                 "none", ""});
  return ok();
}

}  // namespace warploom::target
