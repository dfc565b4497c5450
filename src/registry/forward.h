// SPDX-License-Identifier: BSD-2-Clause
/*
 * How an entry point reaches its provider: each macro checks the handle that decides which provider
 * that is, and calls the slot of the same name. The provider checks all other arguments. They are
 * expressions, so that an entry point can work on the result.
 */
#ifndef REGISTRY_FORWARD_H
#define REGISTRY_FORWARD_H

#include "ia.h"

/* By the handle of an object; subtype names its type in the error. */
#define REGISTRY_FORWARD(call, subtype, handle, ...)                                               \
	({                                                                                         \
		const DAT_PROVIDER *provider_ = registry_handle_provider(handle);                  \
                                                                                                   \
		provider_ ? provider_->call##_func(handle, ##__VA_ARGS__)                          \
			  : registry_error(DAT_INVALID_HANDLE, subtype);                           \
	})

/* By the handle of an instance: the provider gets its own handle instead. */
#define REGISTRY_FORWARD_IA(call, ia_handle, ...)                                                  \
	({                                                                                         \
		const DAT_PROVIDER *provider_;                                                     \
		DAT_IA_HANDLE ia_ = registry_ia_handle(ia_handle, &provider_);                     \
                                                                                                   \
		ia_ ? provider_->call##_func(ia_, __VA_ARGS__)                                     \
		    : registry_error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);                   \
	})

/* By a handle of any type. */
#define REGISTRY_FORWARD_ANY(call, handle, ...)                                                    \
	({                                                                                         \
		const DAT_PROVIDER *provider_;                                                     \
		DAT_HANDLE handle_ = registry_any_handle(handle, &provider_);                      \
                                                                                                   \
		handle_ ? provider_->call##_func(handle_, __VA_ARGS__)                             \
			: registry_error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1);                 \
	})

/*
 * Defines an entry point of the data path. Its fast path is one comparison and a jump, without a
 * stack frame, which is why the slow path is a function of its own with the same parameters.
 */
#define REGISTRY_FORWARD_FAST(call, subtype, handle, parameters, arguments)                        \
	__attribute__((noinline)) static DAT_RETURN call##_slow parameters                         \
	{                                                                                          \
		const DAT_PROVIDER *provider = registry_handle_provider(handle);                   \
                                                                                                   \
		if (!provider)                                                                     \
			return registry_error(DAT_INVALID_HANDLE, subtype);                        \
		return provider->call##_func arguments;                                            \
	}                                                                                          \
                                                                                                   \
	DAT_RETURN dat_##call parameters                                                           \
	{                                                                                          \
		const DAT_PROVIDER *provider = registry_handle_provider_fast(handle);              \
                                                                                                   \
		if (!provider)                                                                     \
			return call##_slow arguments;                                              \
		return provider->call##_func arguments;                                            \
	}

#endif
