#include "tile/verify.h"

#include <fmt/format.h>

#include <algorithm>

#include "tile/verify_rules.h"

namespace warploom::tile {
namespace {

Status verify_body(Context& context, const Body& body, bool top);

Status verify_loop(Context& context, const For& loop) {
  const bool outer = context.divergent;
  for (const Index* index : {&loop.begin, &loop.end, &loop.step})
    context.divergent |= differs_in_cluster(context.program, *index);
  context.loops.push_back(loop.variable);
  WARPLOOM_CHECK(verify_body(context, loop.body, false));
  context.loops.pop_back();
  context.divergent = outer;
  return ok();
}

Status verify_branch(Context& context, const If& branch) {
  const bool outer = context.divergent;
  context.divergent |= differs_in_cluster(context.program, branch.left);
  context.divergent |= differs_in_cluster(context.program, branch.right);
  WARPLOOM_CHECK(verify_body(context, branch.body, false));
  context.divergent = outer;
  return ok();
}

// What is inside a Produce: nothing but copies from global memory into the slot, perhaps in loops and branches.
Status verify_produced(const Context& context, const Statement& statement, PipelineId pipeline) {
  if (std::holds_alternative<For>(statement.node) || std::holds_alternative<If>(statement.node)) return ok();
  const Copy* copy = std::get_if<Copy>(&statement.node);
  if (!copy || context.program.tensor(copy->src.tensor).scope != Scope::global ||
      context.program.tensor(copy->dst.tensor).pipeline != pipeline)
    return invalid(context,
                   fmt::format("a produce of '{}' holds something other than copies into it",
                               context.program.pipeline(pipeline).name),
                   "copies from global tensors to tensors of the pipeline, in for and if at most");
  return ok();
}

Status verify_nested(Context& context, const Statement& statement) {
  if (const For* loop = std::get_if<For>(&statement.node)) return verify_loop(context, *loop);
  if (const If* branch = std::get_if<If>(&statement.node)) return verify_branch(context, *branch);
  if (const Produce* produce = std::get_if<Produce>(&statement.node)) {
    context.producing.push_back(produce->pipeline);
    WARPLOOM_CHECK(verify_body(context, produce->body, false));
    context.producing.pop_back();
  }
  if (const Consume* consume = std::get_if<Consume>(&statement.node)) {
    context.consuming.push_back(consume->pipeline);
    WARPLOOM_CHECK(verify_body(context, consume->body, false));
    context.consuming.pop_back();
  }
  if (const Roles* roles = std::get_if<Roles>(&statement.node))
    for (const Role& role : roles->roles) WARPLOOM_CHECK(verify_body(context, role.body, false));
  return ok();
}

Status verify_body(Context& context, const Body& body, bool top) {
  for (const Statement& statement : body) {
    context.location = &statement.location;
    if (!top && std::holds_alternative<Roles>(statement.node))
      return invalid(context, "roles stand inside another statement", "roles at the top of the program",
                     "nested roles");
    WARPLOOM_CHECK(verify_statement(context, statement));
    if (!context.producing.empty()) WARPLOOM_CHECK(verify_produced(context, statement, context.producing.back()));
    WARPLOOM_CHECK(verify_nested(context, statement));
  }
  return ok();
}

}  // namespace

tl::unexpected<Error> invalid(const Context& context, std::string message, std::string expected, std::string found) {
  const std::string place = context.location ? fmt::format("{}:{}", context.location->file, context.location->line)
                                             : fmt::format("program '{}'", context.program.name);
  return fail({ErrorCode::kTileInvalid, std::move(message), place, std::move(expected), std::move(found),
               "change the statement, or the declarations that it uses"});
}

tl::unexpected<Error> invalid_declaration(const Program& program, std::string_view what, std::string message) {
  return fail({ErrorCode::kTileInvalid,
               std::move(message),
               fmt::format("program '{}': {}", program.name, what),
               {},
               {},
               "change the declaration"});
}

Status verify(const Program& program) {
  WARPLOOM_CHECK(verify_declarations(program));
  Context context{program};
  WARPLOOM_CHECK(verify_body(context, program.body, true));
  return verify_sharing(program);
}

}  // namespace warploom::tile
