// SPDX-License-Identifier: BSD-2-Clause
/*
 * How an entry point calls its provider. Each macro finds the provider by the given handle, or
 * refuses the handle, and calls the slot of the given name. The provider checks all other
 * arguments. The first three are expressions of type DAT_RETURN.
 */
#ifndef REGISTRY_FORWARD_H
#define REGISTRY_FORWARD_H

#include "ia.h"
#include "refuse.h"

/* Calls a slot. Foreign providers may lack it (D2-REG-25). */
#define REGISTRY_CALL(provider, call, ...)                                                         \
	((provider)->call##_func ? (provider)->call##_func(__VA_ARGS__)                            \
				 : registry_error(DAT_MODEL_NOT_SUPPORTED, DAT_NO_SUBTYPE))

/* Takes the handle of an object. `subtype` is that of the error for an invalid handle. */
#define REGISTRY_FORWARD(call, subtype, handle, ...)                                               \
	({                                                                                         \
		const DAT_PROVIDER *provider_ = registry_handle_provider(handle);                  \
                                                                                                   \
		provider_ ? REGISTRY_CALL(provider_, call, handle, ##__VA_ARGS__)                  \
			  : registry_bad_handle("dat_" #call, #handle, handle, subtype);           \
	})

/* Takes the consumer's handle of an instance, and passes on the provider's. */
#define REGISTRY_FORWARD_IA(call, ia_handle, ...)                                                  \
	({                                                                                         \
		const DAT_PROVIDER *provider_;                                                     \
		DAT_IA_HANDLE ia_ = registry_ia_handle(ia_handle, &provider_);                     \
                                                                                                   \
		ia_ ? REGISTRY_CALL(provider_, call, ia_, __VA_ARGS__)                             \
		    : registry_bad_handle("dat_" #call, #ia_handle, ia_handle,                     \
					  DAT_INVALID_HANDLE_IA);                                  \
	})

/* Takes a handle of any type. */
#define REGISTRY_FORWARD_ANY(call, handle, ...)                                                    \
	({                                                                                         \
		const DAT_PROVIDER *provider_;                                                     \
		DAT_HANDLE handle_ = registry_any_handle(handle, &provider_);                      \
                                                                                                   \
		handle_ ? REGISTRY_CALL(provider_, call, handle_, __VA_ARGS__)                     \
			: registry_bad_handle("dat_" #call, #handle, handle, DAT_INVALID_HANDLE1); \
	})

/*
 * Defines the entry point dat_<call> of the data path. The slow path is a separate function,
 * because the fast path would otherwise save its arguments in a stack frame.
 */
#define REGISTRY_FORWARD_FAST(call, subtype, handle, parameters, arguments)                        \
	__attribute__((noinline)) static DAT_RETURN call##_slow parameters                         \
	{                                                                                          \
		const DAT_PROVIDER *provider = registry_handle_provider(handle);                   \
                                                                                                   \
		if (!provider)                                                                     \
			return registry_bad_handle("dat_" #call, #handle, handle, subtype);        \
		if (!provider->call##_func)                                                        \
			return registry_error(DAT_MODEL_NOT_SUPPORTED, DAT_NO_SUBTYPE);            \
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
