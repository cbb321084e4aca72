// SPDX-License-Identifier: Apache-2.0
#include "benchdnn/common/knobs.hpp"

#include <cstdlib>

namespace bench {

using namespace mxdnn::impl;

std::vector<std::string> split(const std::string &s, char by) {
    std::vector<std::string> parts;
    size_t begin = 0;
    for (size_t i = 0; i <= s.size(); i++)
        if (i == s.size() || s[i] == by) {
            parts.push_back(s.substr(begin, i - begin));
            begin = i + 1;
        }
    return parts;
}

bool option(const std::string &word, const char *name, std::string &value) {
    const std::string head = std::string("--") + name + "=";
    if (word.compare(0, head.size(), head) != 0) return false;
    value = word.substr(head.size());
    return true;
}

int64_t to_int(const std::string &s, const char *what, int64_t least) {
    char *end = nullptr;
    const long long v = std::strtoll(s.c_str(), &end, 10);
    if (s.empty() || *end || v < least || v > max_dim)
        throw usage_error_t(std::string(what) + " is '" + s + "'; it is a whole number from "
                            + std::to_string(least) + " on");
    return v;
}

double to_number(const std::string &s, const char *what) {
    char *end = nullptr;
    const double v = std::strtod(s.c_str(), &end);
    if (s.empty() || *end) throw usage_error_t(std::string(what) + " is '" + s + "'; it is a number");
    return v;
}

data_type_t to_data_type(const std::string &s) {
    const data_type_t dt = data_type_from_name(s.c_str());
    if (dt == mxdnn_data_type_undef) throw usage_error_t("data type '" + s + "' is not known");
    return dt;
}

std::vector<int64_t> to_dims(const std::string &s) {
    std::vector<int64_t> dims;
    for (const std::string &d : split(s, 'x'))
        dims.push_back(d == "*" ? runtime_dim : to_int(d, "a dimension"));
    if (dims.size() < 2 || dims.size() > size_t(max_ndims))
        throw usage_error_t("'" + s + "' has " + std::to_string(dims.size()) + " dims; 2 to 12 are possible");
    return dims;
}

tensor_type_t to_tensor_type(const std::string &s) {
    tensor_type_t t;
    if (const named_format_t *f = named_format(s.c_str())) {
        t.dt = f->elem;
        t.quant = f->quant;
        t.quantised = true;
        return t;
    }
    t.dt = to_data_type(s);
    return t;
}

std::string to_text(const std::vector<int64_t> &dims) {
    std::string s;
    for (int64_t d : dims)
        s += (s.empty() ? "" : "x") + (d == runtime_dim ? std::string("*") : std::to_string(d));
    return s;
}

} // namespace bench
