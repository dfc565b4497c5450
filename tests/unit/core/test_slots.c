// SPDX-License-Identifier: BSD-2-Clause
/* The table of the linked transport has no empty slot: the core calls each without a check. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/transport.h"

/* All slots are pointers, except ep_size. */
_Static_assert(sizeof(struct transport_ops) % sizeof(uintptr_t) == 0, "slots are words");
_Static_assert(sizeof(size_t) == sizeof(uintptr_t), "ep_size is a word, too");

static void transport__each_slot__filled(void **state)
{
	unsigned char table[sizeof(struct transport_ops)];

	(void)state;
	memcpy(table, transport_this, sizeof(table));
	for (size_t at = 0; at < sizeof(table); at += sizeof(uintptr_t)) {
		uintptr_t slot;

		memcpy(&slot, table + at, sizeof(slot));
		if (!slot && at != offsetof(struct transport_ops, ep_size))
			fail_msg("%s: empty slot at offset %zu", transport_this->name, at);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(transport__each_slot__filled),
	};

	return cmocka_run_group_tests_name("core slots", tests, NULL, NULL);
}
