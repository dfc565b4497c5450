/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * For C++11 and later: the operators that combine flags of one type, so that an argument such as
 * DAT_EVD_DTO_FLAG | DAT_EVD_CONNECTION_FLAG needs no cast, as in C. They are inline, and constant
 * expressions where C++11 permits that. C++98 has no such functions, and keeps the operators of the
 * integers: there the cast is needed.
 */
#ifndef _DAT_CXX_H_
#define _DAT_CXX_H_

#if defined(__cplusplus) && __cplusplus >= 201103L

/*
 * Defines the operators | & ~ |= &= for a type of flags, in C++11 and later. The headers use it for
 * their own types. The argument `all` has every bit that a value of the type can have.
 */
#define DAT_CXX_FLAGS(type, all)                                                                   \
	constexpr type operator|(type a, type b) noexcept                                          \
	{                                                                                          \
		return static_cast<type>(static_cast<unsigned>(a) | static_cast<unsigned>(b));     \
	}                                                                                          \
	constexpr type operator&(type a, type b) noexcept                                          \
	{                                                                                          \
		return static_cast<type>(static_cast<unsigned>(a) & static_cast<unsigned>(b));     \
	}                                                                                          \
	constexpr type operator~(type a) noexcept                                                  \
	{                                                                                          \
		return static_cast<type>(~static_cast<unsigned>(a) & (all));                       \
	}                                                                                          \
	inline type &operator|=(type &a, type b) noexcept                                          \
	{                                                                                          \
		return a = a | b;                                                                  \
	}                                                                                          \
	inline type &operator&=(type &a, type b) noexcept                                          \
	{                                                                                          \
		return a = a & b;                                                                  \
	}                                                                                          \
	static_assert(true, "the macro ends with a semicolon")

#endif

#endif
