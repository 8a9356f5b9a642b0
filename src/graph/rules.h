// What shape rules share. Private to the room.
#pragma once
#include "graph/operators.h"
namespace warploom::graph {
tl::unexpected<Error> type_error(const Question& q, std::string expected, std::string found);
tl::unexpected<Error> shape_error(const Question& q, std::string message, std::string expected, std::string found);
tl::unexpected<Error> attribute_error(const Question& q, std::string message, std::string expected, std::string found);

inline bool is_wide_float(Dtype dtype) { return is_float(dtype) && bits_of(dtype) >= 16; }
// Every input of one type, of 16 bits or more if floating-point; booleans only where `booleans`.
Status same_type(const Question& q, bool floats_only, bool booleans = false);

// An input that must be a constant list of integers, because the output's shape depends on it.
Result<std::vector<std::int64_t>> list(const Question& q, std::size_t i, std::string_view what, std::size_t most = kMaxRank);

// Distinct normalised axes, ascending.
Result<std::vector<int>> axes(const Question& q, const std::vector<std::int64_t>& wanted, std::size_t rank);
}  // namespace warploom::graph
