// SPDX-License-Identifier: Apache-2.0
// A map that many threads use at once and that forgets what was used longest ago.
#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>

namespace mxdnn_jax {

template <typename value_t>
class lru_cache_t {
public:
    explicit lru_cache_t(size_t capacity) : capacity_(capacity) {}

    // make() runs outside the lock, because it may compile. Where two threads make the same value, the first
    // one stays. What make() throws is not kept.
    template <typename make_t>
    std::shared_ptr<const value_t> find_or_make(const std::string &key, make_t make) {
        if (auto found = find(key)) return found;
        std::shared_ptr<const value_t> made = make();
        const std::lock_guard<std::mutex> lock(mutex_);
        const auto [at, is_new] = index_.try_emplace(key);
        if (!is_new) return at->second->second;
        entries_.emplace_front(key, made);
        at->second = entries_.begin();
        if (entries_.size() > capacity_) {
            index_.erase(entries_.back().first);
            entries_.pop_back();
        }
        return made;
    }

private:
    using entries_t = std::list<std::pair<std::string, std::shared_ptr<const value_t>>>;

    std::shared_ptr<const value_t> find(const std::string &key) {
        const std::lock_guard<std::mutex> lock(mutex_);
        const auto at = index_.find(key);
        if (at == index_.end()) return nullptr;
        entries_.splice(entries_.begin(), entries_, at->second);
        return at->second->second;
    }

    const size_t capacity_;
    std::mutex mutex_;
    entries_t entries_; // the one that was used last stands first
    std::unordered_map<std::string, typename entries_t::iterator> index_;
};

} // namespace mxdnn_jax
