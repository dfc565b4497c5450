// SPDX-License-Identifier: BSD-2-Clause
/* Programs of DAT 1.2 and of DAT 2.0 exchange every operation, in one process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <dat/udat.h>

#include "must.h"
#include "side.h"

static const struct side_calls *generations[2]; /* of DAT 1.2 and DAT 2.0 */

struct end {
	const struct side_calls *calls;
	struct side *side;
};

/* The one that connects is of generation `active`. */
struct pair {
	struct end from, to;
};

static void end_open(struct end *end, int generation)
{
	end->calls = generations[generation];
	end->side = end->calls->open();
}

static void pair_open(struct pair *pair, int active)
{
	end_open(&pair->from, active);
	end_open(&pair->to, !active);
}

static void pair_close(struct pair *pair)
{
	pair->from.calls->close(pair->from.side);
	pair->to.calls->close(pair->to.side);
}

static struct side_event next(struct end *end, enum side_queue queue, unsigned int number)
{
	struct side_event event = end->calls->wait(end->side, queue);

	assert_int_equal(event.number, number);
	return event;
}

static void *request(struct pair *pair, uint64_t qualifier)
{
	pair->from.calls->connect(pair->from.side, qualifier);
	return next(&pair->to, SIDE_CONN, DAT_CONNECTION_REQUEST_EVENT).cr;
}

static void pair_link(struct pair *pair)
{
	uint64_t qualifier = pair->to.calls->listen(pair->to.side);

	pair->to.calls->accept(pair->to.side, request(pair, qualifier));
	(void)next(&pair->from, SIDE_CONN, DAT_CONNECTION_EVENT_ESTABLISHED);
	(void)next(&pair->to, SIDE_CONN, DAT_CONNECTION_EVENT_ESTABLISHED);
}

static void post(struct end *end, struct side_post what)
{
	assert_int_equal(end->calls->post(end->side, &what), DAT_SUCCESS);
}

/* The next completion in that queue. */
static void done(struct end *end, enum side_queue queue, int status, uint64_t length)
{
	struct side_event event = next(end, queue, DAT_DTO_COMPLETION_EVENT);

	assert_int_equal(event.status, status);
	if (status == DAT_DTO_SUCCESS)
		assert_int_equal(event.length, length);
}

/* Is the post refused, because the device is iWARP? */
static bool lacks(struct pair *pair, struct side_post what)
{
	if (!pair->from.calls->is_iwarp_device(pair->from.side))
		return false;
	assert_int_equal(DAT_GET_TYPE(pair->from.calls->post(pair->from.side, &what)),
			 DAT_MODEL_NOT_SUPPORTED);
	return true;
}

static uint8_t *bytes(struct end *end)
{
	return end->calls->bytes(end->side);
}

static uint64_t address(struct end *end)
{
	return (uint64_t)(uintptr_t)bytes(end);
}

static void fill(struct end *end, int value)
{
	memset(bytes(end), value, SIDE_SIZE);
}

static void all_are(const uint8_t *at, size_t count, int value)
{
	for (size_t i = 0; i < count; i++)
		assert_int_equal(at[i], value);
}

/* A message, a Write and a Read from one end. */
static void exchange(struct end *one, struct end *other)
{
	uint32_t key = other->calls->key(other->side);

	fill(one, 1);
	fill(other, 2);
	post(other, (struct side_post){SIDE_RECEIVE, .at = 0, .length = 1000});
	post(one, (struct side_post){SIDE_SEND, .at = 0, .length = 900});
	done(one, SIDE_REQUEST, DAT_DTO_SUCCESS, 900);
	done(other, SIDE_RECV, DAT_DTO_SUCCESS, 900);
	all_are(bytes(other), 900, 1);
	all_are(bytes(other) + 900, 100, 2);
	post(one, (struct side_post){SIDE_WRITE, 0, 500, key, address(other) + 2000});
	done(one, SIDE_REQUEST, DAT_DTO_SUCCESS, 500);
	post(one, (struct side_post){SIDE_READ, 3000, 600, key, address(other) + 1950});
	done(one, SIDE_REQUEST, DAT_DTO_SUCCESS, 600);
	all_are(bytes(other) + 2000, 500, 1);
	all_are(bytes(one) + 3000, 50, 2);
	all_are(bytes(one) + 3050, 500, 1);
	all_are(bytes(one) + 3550, 50, 2);
}

/* D2-MIX-01 D2-MIX-02 D2-COEX-05 D2-REG-02: one provider library for both registries */
static void transfers__both_directions__every_byte_arrives(void **state)
{
	(void)state;
	for (int active = 0; active < 2; active++) {
		struct pair pair;

		pair_open(&pair, active);
		pair_link(&pair);
		exchange(&pair.from, &pair.to);
		exchange(&pair.to, &pair.from);
		pair_close(&pair);
	}
}

/* D2-MIX-02: the window of one generation, written by the other */
static void windows__both_directions__written(void **state)
{
	(void)state;
	for (int active = 0; active < 2; active++) {
		struct pair pair;
		uint32_t key;

		pair_open(&pair, active);
		pair_link(&pair);
		key = pair.to.calls->bind(pair.to.side);
		fill(&pair.from, 3);
		fill(&pair.to, 4);
		post(&pair.from, (struct side_post){SIDE_WRITE, 0, 64, key, address(&pair.to)});
		done(&pair.from, SIDE_REQUEST, DAT_DTO_SUCCESS, 64);
		post(&pair.from, (struct side_post){SIDE_READ, 100, 64, key, address(&pair.to)});
		done(&pair.from, SIDE_REQUEST, DAT_DTO_SUCCESS, 64);
		all_are(bytes(&pair.to), 64, 3);
		all_are(bytes(&pair.to) + 64, 64, 4);
		pair_close(&pair);
	}
}

/* D2-MIX-05 */
static void send__longer_than_the_receive__length_error(void **state)
{
	(void)state;
	for (int active = 0; active < 2; active++) {
		struct pair pair;

		pair_open(&pair, active);
		pair_link(&pair);
		post(&pair.to, (struct side_post){SIDE_RECEIVE, .at = 0, .length = 16});
		post(&pair.from, (struct side_post){SIDE_SEND, .at = 0, .length = 17});
		done(&pair.to, SIDE_RECV, DAT_DTO_ERR_LOCAL_LENGTH, 0);
		(void)next(&pair.to, SIDE_CONN, DAT_CONNECTION_EVENT_BROKEN);
		/* to the peer of an iWARP device it may look like an orderly end */
		if (pair.from.calls->is_iwarp_device(pair.from.side))
			assert_in_range(pair.from.calls->wait(pair.from.side, SIDE_CONN).number,
					DAT_CONNECTION_EVENT_DISCONNECTED,
					DAT_CONNECTION_EVENT_BROKEN);
		else
			(void)next(&pair.from, SIDE_CONN, DAT_CONNECTION_EVENT_BROKEN);
		pair_close(&pair);
	}
}

/* D2-MIX-07 D2-IMM-17 */
static void immediate__to_an_endpoint_of_1_2__refused(void **state)
{
	struct pair pair;
	struct side_post what = {SIDE_WRITE_IMMEDIATE, .length = 8};

	(void)state;
	pair_open(&pair, 1);
	pair_link(&pair);
	fill(&pair.to, 5);
	what.key = pair.to.calls->key(pair.to.side);
	what.address = address(&pair.to);
	assert_int_equal(DAT_GET_TYPE(pair.from.calls->post(pair.from.side, &what)),
			 DAT_MODEL_NOT_SUPPORTED);
	exchange(&pair.from, &pair.to); /* the connection is as before */
	pair_close(&pair);
}

/* D2-MIX-08 */
static void atomics__memory_of_1_2__remote_access(void **state)
{
	struct side_post what = {SIDE_FETCH_ADD, .length = 8};
	struct side_event event;
	struct pair pair;

	(void)state;
	pair_open(&pair, 1);
	pair_link(&pair);
	fill(&pair.to, 6);
	what.key = pair.to.calls->key(pair.to.side);
	what.address = address(&pair.to);
	if (lacks(&pair, what)) {
		pair_close(&pair);
		return;
	}
	post(&pair.from, what);
	event = pair.from.calls->wait(pair.from.side, SIDE_REQUEST);
	assert_int_equal(event.status, DAT_DTO_ERR_REMOTE_ACCESS);
	(void)next(&pair.from, SIDE_CONN, DAT_CONNECTION_EVENT_BROKEN);
	(void)next(&pair.to, SIDE_CONN, DAT_CONNECTION_EVENT_BROKEN);
	all_are(bytes(&pair.to), 8, 6);
	pair_close(&pair);
}

/* D2-MIX-09 D2-INV-05 D2-INV-07: the region, or a window over it */
static void invalidate__key_of_1_2__dead(void **state)
{
	(void)state;
	for (int is_window = 0; is_window < 2; is_window++) {
		struct pair pair;
		uint32_t key;

		pair_open(&pair, 1);
		pair_link(&pair);
		key = is_window ? pair.to.calls->bind(pair.to.side)
				: pair.to.calls->key(pair.to.side);
		fill(&pair.from, 7);
		fill(&pair.to, 8);
		if (lacks(&pair, (struct side_post){SIDE_SEND_INVALIDATE, 0, 32, key, 0})) {
			pair_close(&pair);
			continue;
		}
		post(&pair.to, (struct side_post){SIDE_RECEIVE, .at = 0, .length = 64});
		post(&pair.from, (struct side_post){SIDE_SEND_INVALIDATE, 0, 32, key, 0});
		done(&pair.from, SIDE_REQUEST, DAT_DTO_SUCCESS, 32);
		done(&pair.to, SIDE_RECV, DAT_DTO_SUCCESS, 32);
		all_are(bytes(&pair.to), 32, 7);
		/* its own messages still use the region */
		post(&pair.from, (struct side_post){SIDE_RECEIVE, .at = 0, .length = 64});
		post(&pair.to, (struct side_post){SIDE_SEND, .at = 64, .length = 64});
		done(&pair.from, SIDE_RECV, DAT_DTO_SUCCESS, 64);
		post(&pair.from,
		     (struct side_post){SIDE_WRITE, 1000, 8, key, address(&pair.to) + 1000});
		done(&pair.from, SIDE_REQUEST, DAT_DTO_ERR_REMOTE_ACCESS, 0);
		(void)next(&pair.to, SIDE_CONN, DAT_CONNECTION_EVENT_BROKEN);
		all_are(bytes(&pair.to) + 1000, 8, 8);
		pair_close(&pair);
	}
}

/* D2-MIX-10 D2-MIX-11: private data of a reject are for connectors of DAT 2.0 alone */
static void reject__of_the_other_generation__without_data(void **state)
{
	(void)state;
	for (int active = 0; active < 2; active++) {
		struct pair pair;
		struct side_event event;
		uint64_t qualifier;

		pair_open(&pair, active);
		qualifier = pair.to.calls->listen(pair.to.side);
		pair.to.calls->reject(pair.to.side, request(&pair, qualifier));
		event = next(&pair.from, SIDE_CONN, DAT_CONNECTION_EVENT_PEER_REJECTED);
		assert_int_equal(event.length, 0);
		pair.from.calls->reset(pair.from.side);
		pair_close(&pair);
	}
}

/* D2-COEX-04 D2-EXT-06 D2-MIX-16 D2-OPEN-06 */
static void handles__of_the_other_generation__refused(void **state)
{
	(void)state;
	for (int active = 0; active < 2; active++) {
		void *handles[SIDE_OBJECTS];
		const char *taken;
		struct pair pair;

		pair_open(&pair, active);
		pair_link(&pair);
		(void)pair.to.calls->bind(pair.to.side);
		pair.to.calls->handles(pair.to.side, handles);
		for (int i = 0; i < SIDE_OBJECTS; i++)
			assert_non_null(handles[i]);
		taken = pair.from.calls->takes(pair.from.side, handles);
		if (taken)
			fail_msg("generation %d: %s", active + 1, taken);
		exchange(&pair.from, &pair.to); /* none of them was harmed */
		pair_close(&pair);
	}
}

/* D2-COEX-06 */
static void listen__qualifier_of_the_other_generation__in_use(void **state)
{
	(void)state;
	for (int active = 0; active < 2; active++) {
		uint64_t qualifier;
		struct pair pair;

		pair_open(&pair, active);
		qualifier = pair.to.calls->listen(pair.to.side);
		assert_true(pair.from.calls->is_in_use(pair.from.side, qualifier));
		pair_close(&pair);
	}
}

/* D2-COEX-07 */
static void post__key_of_the_other_generation__privileges_violation(void **state)
{
	(void)state;
	for (int active = 0; active < 2; active++) {
		struct side_post what = {SIDE_SEND, 0, 8, 0, 0, 0};
		struct pair pair;

		pair_open(&pair, active);
		pair_link(&pair);
		what.local_key = pair.to.calls->local_key(pair.to.side);
		assert_int_not_equal(what.local_key, pair.from.calls->local_key(pair.from.side));
		assert_int_not_equal(pair.to.calls->key(pair.to.side),
				     pair.from.calls->key(pair.from.side));
		assert_int_equal(DAT_GET_TYPE(pair.from.calls->post(pair.from.side, &what)),
				 DAT_PRIVILEGES_VIOLATION);
		exchange(&pair.from, &pair.to);
		pair_close(&pair);
	}
}

static unsigned int count_threads(void)
{
	DIR *folder = opendir("/proc/self/task");
	unsigned int count = 0;

	must(folder);
	while (readdir(folder))
		count++;
	closedir(folder);
	return count;
}

/* The provider libraries in memory; one adapter needs one. */
static unsigned int count_providers(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	unsigned int count = 0;
	char line[4096];

	must(maps);
	while (fgets(line, sizeof(line), maps))
		count += strstr(line, "r-xp") &&
			 (strstr(line, "/libdat-soft.so.1") || strstr(line, "/libdat-verbs.so.1"));
	fclose(maps);
	return count;
}

/* D2-IA-15: of one adapter */
static void provider__both_generations__same_values(void **state)
{
	uint64_t first[SIDE_PROVIDER_VALUES], second[SIDE_PROVIDER_VALUES];
	struct pair pair;

	(void)state;
	pair_open(&pair, 0);
	pair.from.calls->provider(pair.from.side, first);
	pair.to.calls->provider(pair.to.side, second);
	for (int i = 0; i < SIDE_PROVIDER_VALUES; i++)
		assert_int_equal(first[i], second[i]);
	pair_close(&pair);
}

/* D2-COEX-03: one library; the second instance adds as many threads, whatever its generation */
static void open__both_generations__one_library_and_its_threads(void **state)
{
	unsigned int threads[2];

	(void)state;
	for (int generation = 0; generation < 2; generation++) {
		struct end first, second;

		end_open(&first, 0);
		end_open(&second, generation);
		threads[generation] = count_threads();
		assert_int_equal(count_providers(), 1);
		second.calls->close(second.side);
		first.calls->close(first.side);
	}
	assert_int_equal(threads[1], threads[0]);
}

/* D2-LIB-11: SIDE_LIBRARY is loaded first, with those flags, and the modules, too */
static const struct side_calls *load(const char *variable)
{
	const char *flags = getenv("SIDE_FLAGS"), *library = getenv("SIDE_LIBRARY");
	int how = flags ? atoi(flags) : RTLD_NOW | RTLD_LOCAL;
	const struct side_calls *calls;
	void *module;

	if (library)
		must(dlopen(library, how));
	module = dlopen(getenv(variable), how);

	if (!module)
		fprintf(stderr, "%s\n", dlerror());
	must(module);
	calls = dlsym(module, "side_calls");
	must(calls);
	return calls;
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(transfers__both_directions__every_byte_arrives),
		cmocka_unit_test(windows__both_directions__written),
		cmocka_unit_test(send__longer_than_the_receive__length_error),
		cmocka_unit_test(immediate__to_an_endpoint_of_1_2__refused),
		cmocka_unit_test(atomics__memory_of_1_2__remote_access),
		cmocka_unit_test(invalidate__key_of_1_2__dead),
		cmocka_unit_test(reject__of_the_other_generation__without_data),
		cmocka_unit_test(handles__of_the_other_generation__refused),
		cmocka_unit_test(listen__qualifier_of_the_other_generation__in_use),
		cmocka_unit_test(post__key_of_the_other_generation__privileges_violation),
		cmocka_unit_test(provider__both_generations__same_values),
		cmocka_unit_test(open__both_generations__one_library_and_its_threads),
	};

	generations[0] = load("SIDE_1");
	generations[1] = load("SIDE_2");
	return cmocka_run_group_tests_name("dat2 mix", tests, NULL, NULL);
}
