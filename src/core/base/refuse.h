// SPDX-License-Identifier: BSD-2-Clause
/*
 * Refusals of a call: each function logs the call, the parameter, what is wrong with it and the
 * limit (kind CORE_LOG_ERROR), and composes the return code. They are called on cold paths only, so
 * a check costs one comparison, whether anything is logged or not.
 */
#ifndef CORE_REFUSE_H
#define CORE_REFUSE_H

#include <stdint.h>

#include <dat/udat.h>

/* A parameter of a call, as the consumer knows it. */
struct core_arg {
	const char *call;
	const char *name;
	unsigned int number; /* from 1 */
};

/* The parameter of dat_<call> with that number and name. */
#define CORE_ARG(call, number, name)                                                               \
	({                                                                                         \
		static const struct core_arg arg_ = CORE_ARG_INIT(call, number, name);             \
                                                                                                   \
		&arg_;                                                                             \
	})
#define CORE_ARG_INIT(call, number, name)                                                          \
	{                                                                                          \
		"dat_" #call, #name, number                                                        \
	}

#define CORE_COLD __attribute__((cold, noinline))

/* DAT_INVALID_PARAMETER with the number of the parameter; the text says what is wrong. */
CORE_COLD __attribute__((format(printf, 2, 3))) DAT_RETURN core_bad_arg(const struct core_arg *arg,
									const char *format, ...);
/* The parameter is a NULL pointer. */
CORE_COLD DAT_RETURN core_bad_null(const struct core_arg *arg);
/* A mask or an enumeration has bits that are not in `known`. */
CORE_COLD DAT_RETURN core_bad_bits(const struct core_arg *arg, uint64_t value, uint64_t known);
CORE_COLD DAT_RETURN core_bad_range(const struct core_arg *arg, int64_t value, int64_t min,
				    int64_t max);

/* DAT_INVALID_HANDLE: no live object of the required type, or one that does not fit. */
CORE_COLD DAT_RETURN core_bad_handle(const struct core_arg *arg, DAT_RETURN_SUBTYPE subtype,
				     DAT_HANDLE handle);

/* Checks the mask of a query, which may have the bits in `known`, and its output. */
DAT_RETURN core_check_query(const struct core_arg *mask_arg, uint64_t mask, uint64_t known,
			    const struct core_arg *param_arg, const void *param);

/* DAT_MODEL_NOT_SUPPORTED */
CORE_COLD DAT_RETURN core_unsupported(const struct core_arg *arg, const char *what);

#endif
