// SPDX-License-Identifier: BSD-2-Clause
/*
 * One open instance of a mock provider, for tests of what happens to calls on it.
 */
#ifndef TESTS_REGISTRY_MOCK_OPEN_H
#define TESTS_REGISTRY_MOCK_OPEN_H

#include "child.h"
#include "mock.h"

static DAT_IA_HANDLE ia;	  /* the consumer's; the provider's is mock.ia */
static DAT_EVD_HANDLE evd;	  /* of the instance, made by the mock */
static struct mock_object object; /* of any type, outside all arenas */

static inline void mock_open(const char *variable)
{
	conf_set_library("mock " U "2 nonthreadsafe default %s mock.1 \"\" \"\"\n",
			 library_get(variable));
	evd = DAT_HANDLE_NULL;
	must(dat_ia_open((DAT_NAME_PTR) "mock", 8, &evd, &ia) == DAT_SUCCESS);
	object.provider = mock.provider;
}

#endif
