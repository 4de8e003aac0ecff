#pragma once

#include <dflow/op/symbol.hpp>

#include <algorithm>
#include <bit>
#include <span>
#include <vector>

namespace dflow {

/// Records one formula: the steps of all ways through an expression; each step is there once.
class FormulaRecorder {
 public:
  struct Refused {};

  FormulaRecorder() : before_(current()) { current() = this; }
  FormulaRecorder(const FormulaRecorder&) = delete;
  FormulaRecorder& operator=(const FormulaRecorder&) = delete;
  ~FormulaRecorder() { current() = before_; }

  /// The recorder of this thread; null: none.
  static FormulaRecorder*& current() {
    static constinit thread_local FormulaRecorder* recorder = nullptr;
    return recorder;
  }

  std::int32_t add(const Formula::Step& step) {
    const auto same = [&](const Formula::Step& other) {
      return other.operation == step.operation && other.is_whole == step.is_whole && other.a == step.a &&
             other.b == step.b && other.c == step.c && other.whole == step.whole &&
             std::bit_cast<std::uint64_t>(other.real) == std::bit_cast<std::uint64_t>(step.real);
    };
    const auto found = std::find_if(steps_.begin(), steps_.end(), same);
    if (found != steps_.end()) return static_cast<std::int32_t>(found - steps_.begin());
    if (steps_.size() == max_formula_steps) throw Refused{};
    steps_.push_back(step);
    return static_cast<std::int32_t>(steps_.size()) - 1;
  }

  /// True first; the same comparison has one answer on each way.
  bool decide(std::int32_t comparison) {
    for (std::size_t d = 0; d < at_; ++d) {
      if (way_[d].comparison == comparison) return way_[d].answer;
    }
    if (at_ == way_.size()) {
      if (way_.size() == max_formula_ways) throw Refused{};
      way_.push_back({comparison, true});
    }
    return way_[at_++].answer;
  }

  void run(bool gives_truth, std::span<const Symbol> arguments,
           FunctionRef<SymbolicResult(const Symbol* arguments)> evaluate) {
    do {
      at_ = 0;
      const SymbolicResult result = evaluate(arguments.data());
      const std::int32_t step =
          gives_truth ? add({.operation = Formula::Operation::truth, .is_whole = true, .whole = result.truth ? 1 : 0})
                      : result.number.step_;
      if (ways_.size() == max_formula_ways) throw Refused{};
      ways_.push_back({way_, step});
      while (!way_.empty() && !way_.back().answer) way_.pop_back();
      if (!way_.empty()) way_.back().answer = false;
    } while (!way_.empty());
    result_ = join(0, ways_.size(), 0);
  }

  /// The steps that the result needs.
  Formula take() {
    std::vector<bool> is_needed(steps_.size());
    is_needed[static_cast<std::size_t>(result_)] = true;
    for (std::size_t s = steps_.size(); s-- > 0;) {
      if (!is_needed[s] || steps_[s].operation == Formula::Operation::argument) continue;
      for (const std::int32_t of : {steps_[s].a, steps_[s].b, steps_[s].c}) {
        if (of >= 0) is_needed[static_cast<std::size_t>(of)] = true;
      }
    }
    Formula formula;
    std::vector<std::int32_t> place(steps_.size(), -1);
    for (std::size_t s = 0; s < steps_.size(); ++s) {
      if (!is_needed[s]) continue;
      Formula::Step step = steps_[s];
      if (step.operation != Formula::Operation::argument) {
        for (std::int32_t* of : {&step.a, &step.b, &step.c}) {
          if (*of >= 0) *of = place[static_cast<std::size_t>(*of)];
        }
      }
      place[s] = static_cast<std::int32_t>(formula.steps.size());
      formula.steps.push_back(step);
    }
    formula.result = place[static_cast<std::size_t>(result_)];
    return formula;
  }

  Symbol argument(int i) {
    Symbol symbol;
    symbol.step_ = add({.operation = Formula::Operation::argument, .a = i});
    return symbol;
  }

 private:
  struct Decision {
    std::int32_t comparison = -1;
    bool answer = false;
  };
  struct Way {
    std::vector<Decision> decisions;
    std::int32_t result = -1;
  };

  /// The joint result of ways [begin, end) with the same first `depth` decisions. Ways that answer true next come
  /// first.
  std::int32_t join(std::size_t begin, std::size_t end, std::size_t depth) {
    const Way& first = ways_[begin];
    if (first.decisions.size() == depth) return first.result;
    const std::int32_t condition = first.decisions[depth].comparison;
    std::size_t middle = begin;
    while (middle < end && ways_[middle].decisions[depth].answer) ++middle;
    const std::int32_t if_true = join(begin, middle, depth + 1), if_false = join(middle, end, depth + 1);
    if (if_true == if_false) return if_true;
    const Formula::Step &yes = steps_[static_cast<std::size_t>(if_true)],
                        &no = steps_[static_cast<std::size_t>(if_false)];
    if (yes.operation == Formula::Operation::truth && no.operation == Formula::Operation::truth && yes.whole == 1) {
      return condition;
    }
    return add({.operation = Formula::Operation::choose, .a = condition, .b = if_true, .c = if_false});
  }

  FormulaRecorder* const before_;
  std::vector<Formula::Step> steps_;
  std::vector<Decision> way_;  ///< that is being gone
  std::size_t at_ = 0;         ///< how much of it
  std::vector<Way> ways_;
  std::int32_t result_ = -1;
};

void Symbol::refuse() { throw FormulaRecorder::Refused{}; }

std::int32_t Symbol::constant(const Formula::Step& step) {
  FormulaRecorder* const recorder = FormulaRecorder::current();
  return recorder == nullptr ? -1 : recorder->add(step);
}

Symbol Symbol::made(Formula::Operation operation, Symbol a) {
  a.step_ = constant({.operation = operation, .a = a.step_});
  return a;
}

Symbol Symbol::made(Formula::Operation operation, Symbol a, Symbol b) {
  a.step_ = constant({.operation = operation, .a = a.step_, .b = b.step_});
  return a;
}

bool Symbol::decided(Formula::Operation operation, Symbol a, Symbol b) {
  const std::int32_t comparison = constant({.operation = operation, .a = a.step_, .b = b.step_});
  return comparison >= 0 && FormulaRecorder::current()->decide(comparison);
}

std::optional<Formula> record_formula(int num_arguments, bool gives_truth, std::uint32_t types,
                                      FunctionRef<SymbolicResult(const Symbol* arguments)> evaluate) {
  try {
    FormulaRecorder recorder;
    std::vector<Symbol> arguments;
    arguments.reserve(static_cast<std::size_t>(num_arguments));
    for (int i = 0; i < num_arguments; ++i) arguments.push_back(recorder.argument(i));
    recorder.run(gives_truth, arguments, evaluate);
    Formula formula = recorder.take();
    formula.num_arguments = num_arguments;
    formula.gives_truth = gives_truth;
    formula.types = types;
    for (const Formula::Step& step : formula.steps) {
      const bool is_of_floats =
          step.operation >= Formula::Operation::remainder && step.operation != Formula::Operation::absolute;
      if (is_of_floats) formula.types &= dtype_mask<FloatTypes>;
      if (step.operation >= Formula::Operation::negate) formula.types &= ~dtype_mask<TypeList<bool>>;
    }
    return formula;
  } catch (const FormulaRecorder::Refused&) {
    return std::nullopt;
  }
}

}  // namespace dflow
