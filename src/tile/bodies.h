// What a statement holds: a loop's body, a branch's, a slot's, those of roles.
//
//   for_bodies(statement, [&](const Body& body) { … });  // for each of them in order; for most statements there is none
#pragma once
#include "tile/program.h"
namespace warploom::tile {
template <class F>
void for_bodies(const Statement& statement, const F& f) {
  std::visit(
      [&](const auto& node) {
        if constexpr (requires { node.body; }) f(node.body);
        if constexpr (requires { node.roles; })
          for (const Role& role : node.roles) f(role.body);
      },
      statement.node);
}
}  // namespace warploom::tile
