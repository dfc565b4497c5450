// SPDX-License-Identifier: BSD-2-Clause
/* The packets of the socket: each type is decoded, and nothing else is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <sys/socket.h>

#include "soft/shm/bytes/wire.h"

/* A valid packet of that type, with the longest private data. */
static void fill(union shm_wire *wire, enum shm_wire_type type)
{
	shm_wire_prepare(wire, type);
	switch (type) {
	case SHM_WIRE_REQUEST:
		wire->request.family = AF_INET;
		wire->request.side.port = 1;
		wire->request.qual = UINT64_MAX;
		wire->request.private_size = SHM_PRIVATE_MAX;
		memset(wire->request.private_data, 0x5a, SHM_PRIVATE_MAX);
		break;
	case SHM_WIRE_ACCEPT:
		wire->accept.private_size = SHM_PRIVATE_MAX;
		memset(wire->accept.private_data, 0x5a, SHM_PRIVATE_MAX);
		break;
	case SHM_WIRE_REJECT:
		wire->word.word = SHM_WHY_CONSUMER;
		break;
	case SHM_WIRE_CLOSE:
		wire->word.word = SHM_WHY_ERROR;
		break;
	case SHM_WIRE_MAP_ASK:
	case SHM_WIRE_MAP_REFUSE:
	case SHM_WIRE_KEY_GONE:
		wire->word.word = 77;
		break;
	case SHM_WIRE_MAP_GIVE:
		wire->give.key = 77;
		wire->give.address = 4096;
		wire->give.length = 1;
		break;
	default:
		break;
	}
}

static unsigned fds_of(enum shm_wire_type type)
{
	switch (type) {
	case SHM_WIRE_ACCEPT:
	case SHM_WIRE_MAP_GIVE:
		return 1;
	default:
		return 0;
	}
}

/* The key table may be missing. */
static unsigned most_fds_of(enum shm_wire_type type)
{
	return fds_of(type) + (type == SHM_WIRE_ACCEPT || type == SHM_WIRE_READY);
}

static int decode(const union shm_wire *wire, size_t size, unsigned fds)
{
	union shm_wire copy;

	return shm_wire_decode(wire, size, fds, &copy);
}

static void decode__each_type__comes_through(void **state)
{
	unsigned type;

	(void)state;
	for (type = 1; type < SHM_WIRE_TYPE_END; type++) {
		union shm_wire wire, copy;

		fill(&wire, type);
		for (unsigned fds = fds_of(type); fds <= most_fds_of(type); fds++) {
			assert_int_equal(shm_wire_decode(&wire, shm_wire_size(&wire), fds, &copy),
					 0);
			assert_memory_equal(&wire, &copy, sizeof(wire));
		}
	}
}

static void decode__each_other_size_or_descriptor_count__refused(void **state)
{
	unsigned type;
	size_t size;

	(void)state;
	for (type = 1; type < SHM_WIRE_TYPE_END; type++) {
		union shm_wire wire;

		fill(&wire, type);
		for (size = 0; size <= sizeof(wire); size++)
			if (size != shm_wire_size(&wire))
				assert_int_equal(decode(&wire, size, fds_of(type)), -EPROTO);
		for (size = 0; size < 8; size++)
			if (size < fds_of(type) || size > most_fds_of(type))
				assert_int_equal(
					decode(&wire, shm_wire_size(&wire), (unsigned)size),
					-EPROTO);
	}
}

static void decode__each_other_magic_version_type__refused(void **state)
{
	union shm_wire wire;

	(void)state;
	fill(&wire, SHM_WIRE_WAKE);
	wire.head.magic++;
	assert_int_equal(decode(&wire, sizeof(wire.head), 0), -EPROTO);
	fill(&wire, SHM_WIRE_WAKE);
	wire.head.version++;
	assert_int_equal(decode(&wire, sizeof(wire.head), 0), -EPROTO);
	fill(&wire, SHM_WIRE_WAKE);
	wire.head.type = 0;
	assert_int_equal(decode(&wire, sizeof(wire.head), 0), -EPROTO);
	wire.head.type = SHM_WIRE_TYPE_END;
	assert_int_equal(decode(&wire, sizeof(wire.head), 0), -EPROTO);
	wire.head.type = UINT16_MAX;
	assert_int_equal(decode(&wire, sizeof(wire.head), 0), -EPROTO);
}

static void decode__private_data_too_long__refused(void **state)
{
	const uint32_t sizes[] = {SHM_PRIVATE_MAX + 1, UINT32_MAX, UINT32_MAX - 91};
	union shm_wire wire;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		fill(&wire, SHM_WIRE_REQUEST);
		wire.request.private_size = sizes[i];
		assert_int_equal(decode(&wire, sizeof(wire), 2), -EPROTO);
		assert_int_equal(decode(&wire, offsetof(struct shm_wire_request, private_data), 2),
				 -EPROTO);
	}
}

static void decode__fields_out_of_range__refused(void **state)
{
	union shm_wire wire;

	(void)state;
#define REFUSED(type, change)                                                                      \
	do {                                                                                       \
		fill(&wire, type);                                                                 \
		change;                                                                            \
		assert_int_equal(decode(&wire, shm_wire_size(&wire), fds_of(type)), -EPROTO);      \
	} while (0)
	REFUSED(SHM_WIRE_REQUEST, wire.request.family = AF_UNIX);
	REFUSED(SHM_WIRE_REQUEST, wire.request.side.port = 0);
	REFUSED(SHM_WIRE_REJECT, wire.word.word = SHM_WHY_DISCONNECT);
	REFUSED(SHM_WIRE_REJECT, wire.word.word = 0);
	REFUSED(SHM_WIRE_CLOSE, wire.word.word = SHM_WHY_CONSUMER);
	REFUSED(SHM_WIRE_MAP_ASK, wire.word.word = 0);
	REFUSED(SHM_WIRE_MAP_GIVE, wire.give.key = 0);
	REFUSED(SHM_WIRE_MAP_GIVE, wire.give.length = 0);
	REFUSED(SHM_WIRE_MAP_GIVE, wire.give.length = UINT64_MAX);
	REFUSED(SHM_WIRE_MAP_GIVE, (wire.give.address = UINT64_MAX, wire.give.length = 2));
	REFUSED(SHM_WIRE_MAP_GIVE, (wire.give.offset = INT64_MAX, wire.give.length = 2));
#undef REFUSED
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(decode__each_type__comes_through),
		cmocka_unit_test(decode__each_other_size_or_descriptor_count__refused),
		cmocka_unit_test(decode__each_other_magic_version_type__refused),
		cmocka_unit_test(decode__private_data_too_long__refused),
		cmocka_unit_test(decode__fields_out_of_range__refused),
	};

	return cmocka_run_group_tests_name("shm wire", tests, NULL, NULL);
}
