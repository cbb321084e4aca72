// SPDX-License-Identifier: Apache-2.0
#include "benchdnn/common/perf.hpp"

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <mxdnn/mxdnn.hpp>
#include <numeric>

#include "benchdnn/common/ceilings.hpp"
#include "benchdnn/common/knobs.hpp"
#include "benchdnn/common/settings.hpp"

namespace bench {

double now_ms() {
    using clock = std::chrono::steady_clock;
    return std::chrono::duration<double, std::milli>(clock::now().time_since_epoch()).count();
}

namespace {
double timed(const std::function<void()> &f) {
    const double start = now_ms();
    f();
    return now_ms() - start;
}

// Times calls of a function by so many threads. A CPU clock takes a fifth of a microsecond to read, so short
// calls are timed several at a time.
class timer_t {
public:
    timer_t(const std::function<void()> &f, int threads) : f_(f), threads_(threads) {
        f_();
        constexpr double long_ms = 0.02;
        calls_ = int(std::clamp(long_ms / std::max(sample(), 1e-9), 1., 1000.));
    }
    double sample() const { // of one call
        const double start = work_clock_ms(threads_);
        for (int i = 0; i < calls_; i++) f_();
        return (work_clock_ms(threads_) - start) / calls_;
    }
    int calls() const { return calls_; }

private:
    const std::function<void()> &f_;
    const int threads_;
    int calls_ = 1;
};
std::string digits_of(double x) {
    char s[32];
    std::snprintf(s, sizeof(s), "%.5g", x);
    return s;
}
} // namespace

double times_t::min() const { return ms.empty() ? 0 : *std::min_element(ms.begin(), ms.end()); }
double times_t::max() const { return ms.empty() ? 0 : *std::max_element(ms.begin(), ms.end()); }
double times_t::mean() const {
    return ms.empty() ? 0 : std::accumulate(ms.begin(), ms.end(), 0.) / double(ms.size());
}
double times_t::median() const {
    if (ms.empty()) return 0;
    std::vector<double> s = ms;
    std::nth_element(s.begin(), s.begin() + long(s.size() / 2), s.end());
    return s[s.size() / 2];
}

void time_interleaved(const std::function<void()> &mine, const std::function<void()> &peer, int threads,
        double budget_ms, times_t &mine_times, times_t &peer_times) {
    const timer_t my_timer(mine, threads);
    const std::function<void()> nothing = [] {};
    const timer_t peer_timer(peer ? peer : nothing, threads);
    double spent = 0;
    for (int i = 0; i < 20000 && (i < 5 || spent < budget_ms * (peer ? 2 : 1)); i++) {
        mine_times.ms.push_back(my_timer.sample());
        spent += mine_times.ms.back() * my_timer.calls();
        if (!peer) continue;
        peer_times.ms.push_back(peer_timer.sample());
        spent += peer_times.ms.back() * peer_timer.calls();
    }
}

void time_beside_copies(const std::function<void()> &f, double bytes, int threads, double budget_ms,
        times_t &times, times_t &copy_times) {
    far_memory_t &memory = far_memory(threads);
    f();
    double spent = 0;
    for (int i = 0; i < 5 || (i < 20000 && spent < 2 * budget_ms); i++) {
        const double copied = memory.copy(), start = work_clock_ms(threads);
        f();
        times.ms.push_back(work_clock_ms(threads) - start);
        copy_times.ms.push_back(copied * bytes / memory.bytes());
        spent += copied + times.ms.back();
    }
}

void time_creation(const std::function<void()> &create, perf_t &r) {
    const auto asked = [](const char *field) {
        return settings.perf_template.find(field) != std::string::npos;
    };
    if (!asked("ctime%") && !asked("cachedtime%")) return;
    constexpr int times = 50;
    const int capacity = mxdnn::get_primitive_cache_capacity();
    mxdnn::set_primitive_cache_capacity(0);
    for (int i = 0; i < times; i++) r.create_times.ms.push_back(timed(create));
    mxdnn::set_primitive_cache_capacity(capacity);
    create();
    for (int i = 0; i < times; i++) r.cached_times.ms.push_back(timed(create));
}

double least_ms(const perf_t &p) {
    const ceilings_t &c = p.limits ? *p.limits : ceilings(p.threads);
    // A device is known by its rate for bf16 alone.
    const double gflops =
            (c.rate(p.products).gflops > 0 ? c.rate(p.products) : c.rate(products_t::bf16)).gflops;
    return std::max(p.bytes / (p.copies ? c.copy_gbs : c.read_gbs), gflops > 0 ? p.flops / gflops : 0) * 1e-6;
}

namespace {

// A count, or a rate by the time, with a unit of oneDNN's in front or none: "Gflops", "bw". False for others.
bool counted(const std::string &field, const perf_t &p, double ms, double &value) {
    const size_t unit = std::string("KMG").find(field.substr(0, 1));
    const bool has_unit = !field.empty() && unit != std::string::npos;
    const std::string what = has_unit ? field.substr(1) : field;
    if (what != "ops" && what != "flops" && what != "bytes" && what != "bw") return false;
    value = (what == "ops" || what == "flops" ? p.flops : p.bytes)
            / (what == "flops" || what == "bw" ? ms * 1e-3 : 1) * (has_unit ? std::pow(1e-3, unit + 1) : 1);
    return true;
}

// A part of a problem's words: its driver, its shape, or its attributes.
bool words_of(const std::string &field, const std::string &problem, std::string &text) {
    if (field != "driver" && field != "desc" && field != "attr") return false;
    const std::vector<std::string> words = split(problem, ' ');
    if (field == "driver") text = words.front().substr(2);
    if (field == "desc") text = words.back();
    if (field == "attr")
        for (const std::string &word : words)
            if (word.compare(0, 7, "--attr-") == 0) text += (text.empty() ? "" : " ") + word;
    return true;
}

} // namespace

namespace {

// A template's parts in order: text as it stands, and the fields between two %.
struct part_t {
    std::string text;
    bool is_field;
};
std::vector<part_t> parts_of(const std::string &text) {
    std::vector<part_t> parts;
    for (size_t i = 0; i < text.size();) {
        const size_t end = text[i] == '%' ? text.find('%', i + 1) : std::string::npos;
        if (end != std::string::npos) {
            parts.push_back({text.substr(i + 1, end - i - 1), true});
            i = end + 1;
            continue;
        }
        const size_t next = std::min(text.find('%', i + 1), text.size());
        parts.push_back({text.substr(i, next - i), false});
        i = next;
    }
    return parts;
}

} // namespace

std::string perf_header(const std::string &text) {
    std::string line = "# ";
    bool after_field = false;
    for (const part_t &part : parts_of(text)) {
        // A unit is part of its column's name.
        if (after_field && !part.is_field && std::isalpha(static_cast<unsigned char>(part.text[0])))
            line += ' ';
        line += part.text;
        after_field = part.is_field;
    }
    return line;
}

std::string perf_line(const std::string &text, const perf_t &p) {
    const auto time_of = [](const times_t &t, char sign) {
        return sign == '-' ? t.min() : sign == '0' ? t.mean() : sign == '+' ? t.max() : t.median();
    };
    std::string line;
    for (const part_t &part : parts_of(text)) {
        std::string field = part.text;
        if (!part.is_field) {
            line += field;
            continue;
        }
        const char sign =
                !field.empty() && (field[0] == '-' || field[0] == '0' || field[0] == '+') ? field[0] : 0;
        if (sign) field = field.substr(1);
        const double ms = time_of(p.times, sign);
        std::string words;
        double value = 0;
        if (field == "engine")
            line += p.engine;
        else if (field == "impl")
            line += p.impl;
        else if (field == "prb")
            line += p.problem;
        else if (field == "threads")
            line += std::to_string(p.threads);
        else if (words_of(field, p.problem, words))
            line += words;
        else if (counted(field, p, ms, value))
            line += digits_of(value);
        else if (field == "time")
            line += digits_of(ms);
        else if (field == "gbw")
            line += digits_of(p.bytes / ms * 1e-6);
        else if (field == "roof")
            line += digits_of(
                            100 * (p.copy_times.ms.empty() ? least_ms(p) : time_of(p.copy_times, sign)) / ms)
                    + "%";
        else if (field == "ctime")
            line += digits_of(time_of(p.create_times, sign));
        else if (field == "cachedtime")
            line += digits_of(time_of(p.cached_times, sign));
        else if (field == "against")
            line += p.peer.empty() ? "none" : p.peer;
        else if (field == "peertime")
            line += digits_of(time_of(p.peer_times, sign));
        else if (field == "vs")
            line += p.peer_times.ms.empty() ? "-" : digits_of(time_of(p.peer_times, sign) / ms) + "x";
        else
            throw usage_error_t(
                    "perf field '%" + field
                    + "%' is not known; possible are engine impl driver prb desc attr threads time ops "
                      "flops bytes bw (and with K, M or G in front) gbw roof ctime cachedtime against peertime vs");
    }
    return line;
}

} // namespace bench
