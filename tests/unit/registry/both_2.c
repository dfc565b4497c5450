// SPDX-License-Identifier: BSD-2-Clause
/* The part of test_both.c that is compiled for DAT 2.0, in a module that needs libdat2 alone. */
#include <dat/udat.h>

#include "both.h"

static DAT_RETURN open_2(const char *name, void **ia_out)
{
	DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;

	return dat_ia_open((DAT_NAME_PTR)name, 8, &evd, ia_out);
}

static DAT_RETURN close_2(void *ia)
{
	return dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG);
}

__attribute__((visibility("default"))) const struct both_calls both_2 = {open_2, close_2};
