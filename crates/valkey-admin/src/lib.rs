//! One Valkey or Redis node and one cluster map.
