// SPDX-License-Identifier: BSD-2-Clause
/*
 * The verification in dat_ping: it detects a wrong byte at any position.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "ping.h"

#define SIZE_MAX_TESTED 67u

static unsigned char buffer[SIZE_MAX_TESTED + PING_GUARD];

static struct ping_transfer transfer_of(uint64_t size)
{
	return (struct ping_transfer){.op = PING_WRITE, .nonce = 7, .size = size, .index = 3};
}

static void prepare(const struct ping_transfer *transfer)
{
	ping_fill(buffer, transfer);
	ping_guard(buffer, transfer->size);
}

static void ping_verify__filled__nothing_wrong(void **state)
{
	(void)state;
	for (uint64_t size = 1; size <= SIZE_MAX_TESTED; size++) {
		struct ping_transfer transfer = transfer_of(size);

		prepare(&transfer);
		assert_int_equal(ping_verify(buffer, &transfer), -1);
	}
}

static void ping_verify__one_byte_changed__its_offset(void **state)
{
	(void)state;
	for (uint64_t size = 1; size <= SIZE_MAX_TESTED; size++) {
		struct ping_transfer transfer = transfer_of(size);

		prepare(&transfer);
		/* each byte of the data and of the guard behind them */
		for (uint64_t i = 0; i < size + PING_GUARD; i++) {
			buffer[i] ^= 0x10;
			assert_int_equal(ping_verify(buffer, &transfer), i);
			buffer[i] ^= 0x10;
		}
	}
}

static void ping_verify__bytes_of_another_transfer__wrong(void **state)
{
	struct ping_transfer transfer = transfer_of(64);
	struct ping_transfer other[5] = {transfer, transfer, transfer, transfer, transfer};

	(void)state;
	other[0].index++;
	other[1].nonce++;
	other[2].op = PING_READ;
	other[3].is_reply = true;
	other[4].size = 65;
	for (unsigned i = 0; i < 5; i++) {
		ping_fill(buffer, &other[i]);
		ping_guard(buffer, transfer.size);
		assert_true(ping_verify(buffer, &transfer) >= 0);
	}
}

static void ping_fill__any_size__no_byte_beyond(void **state)
{
	(void)state;
	for (uint64_t size = 1; size <= SIZE_MAX_TESTED; size++) {
		struct ping_transfer transfer = transfer_of(size);

		ping_guard(buffer, size);
		ping_fill(buffer, &transfer);
		assert_int_equal(ping_verify(buffer, &transfer), -1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ping_verify__filled__nothing_wrong),
		cmocka_unit_test(ping_verify__one_byte_changed__its_offset),
		cmocka_unit_test(ping_verify__bytes_of_another_transfer__wrong),
		cmocka_unit_test(ping_fill__any_size__no_byte_beyond),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
