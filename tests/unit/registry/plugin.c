// SPDX-License-Identifier: BSD-2-Clause
/*
 * A plugin of some program, and the only thing in it that needs libdat.
 */
#include <dat/udat.h>

__attribute__((visibility("default"))) DAT_RETURN plugin_open(DAT_IA_HANDLE *ia_handle);

DAT_RETURN plugin_open(DAT_IA_HANDLE *ia_handle)
{
	DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;

	return dat_ia_open((DAT_NAME_PTR) "mock", 8, &evd, ia_handle);
}
