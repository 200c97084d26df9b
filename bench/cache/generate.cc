/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Make a trace of requests with the sizes and the popularity of a CDN's
 * objects:
 *
 *	cdn	web pages, images, parts of videos and downloads; the mix changes
 *		slowly, as from day to night
 *	adv	the same, and the mix changes at once, four times through three
 *		mixes that need different admission
 *	irm	a million objects of 1 byte to 2 GB, and nothing changes
 *	ten	24 tenants.  In the second half one of them asks for each object
 *		once, and one for huge objects
 *
 * The trace is in libCacheSim's format oracleGeneral: records of 24 bytes, with
 * the time (s), the object, its size (bytes), and which request asks for it
 * next (-1: none).  The tenant is in the object's upper 16 bits.
 *
 * The same seed and length make the same trace with the same C++ library.
 */

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

namespace {

constexpr double kPi = 3.14159265358979323846;
constexpr int kPerSecond = 500;		/* requests */
constexpr int kChurn = 100000;		/* requests between two changes of the
					 * objects that are popular */

#pragma pack(push, 1)
struct Record {
	uint32_t	time;
	uint64_t	object;
	uint32_t	size;
	int64_t		next;
};
#pragma pack(pop)

std::mt19937_64 generator;
std::vector<Record> trace;

double
uniform()
{
	return (std::uniform_real_distribution<double>(0, 1)(generator));
}

double
normal()
{
	return (std::normal_distribution<double>(0, 1)(generator));
}

uint64_t
mix(uint64_t x)
{
	x ^= x >> 33;
	x *= 0xff51afd7ed558ccdULL;
	x ^= x >> 33;
	x *= 0xc4ceb9fe1a85ec53ULL;
	return (x ^ x >> 33);
}

/* Draw from a Pareto distribution of exponent a, cut off to low..high. */
double
pareto(double a, double low, double high)
{
	return (low / std::pow(1 + uniform() * (std::pow(low / high, a) - 1),
	    1 / a));
}

/* Draw ranks 0..n-1, rank i in proportion to (i + 1)^-a. */
class Zipf {
public:
	Zipf(size_t n, double a) : below(n)
	{
		double sum = 0;

		for (size_t i = 0; i < n; i++)
			below[i] = sum += std::pow(i + 1, -a);
		for (auto &x : below)
			x /= sum;
	}

	size_t
	operator()() const
	{
		return (std::lower_bound(below.begin(), below.end(),
		    uniform()) - below.begin());
	}

private:
	std::vector<double> below;
};

double web() { return (std::exp(std::log(6e3) + 1.6 * normal())); }
double image() { return (std::exp(std::log(6e4) + 1.2 * normal())); }
double video() { return (uniform() < .8 ? 2097152 : pareto(1, 2e5, 2097152)); }
double download() { return (pareto(.6, 5e6, 2e9)); }
double any() { return (pareto(.5, 1, 2e9)); }

struct Kind {
	int	number;
	double	(*size)();
};

constexpr Kind kWeb = { 0, web };
constexpr Kind kImage = { 1, image };
constexpr Kind kVideo = { 2, video };
constexpr Kind kDownload = { 3, download };
constexpr Kind kAny = { 4, any };

void
request(uint64_t tenant, uint64_t object, double size)
{
	size = std::min(std::max(size, 1.), 4e9);
	trace.push_back({ static_cast<uint32_t>(trace.size() / kPerSecond),
	    tenant << 48 | (object & 0xffffffffffffULL),
	    static_cast<uint32_t>(size), -1 });
}

/* Objects of one kind.  A part of the requests is for an object that nobody
 * asks for again. */
class Class {
public:
	Class(uint64_t number, size_t objects, double zipf, Kind kind,
	    double once) :
	    base(number << 32), rank(objects, zipf), kind(kind), once(once),
	    generation(objects, 0)
	{
	}

	void
	ask(uint64_t tenant)
	{
		uint64_t object;

		if (uniform() < once)
			object = base + 0x80000000ULL + fresh++;
		else
			object = base + popular();
		request(tenant, object, size(object));
	}

	/* Replace this part of the popular objects by others. */
	void
	churn(double part)
	{
		for (auto &g : generation)
			if (uniform() < part)
				g++;
	}

private:
	uint64_t base;
	Zipf rank;
	Kind kind;
	double once;
	std::vector<uint32_t> generation;
	uint64_t fresh = 0;

	uint64_t
	popular()
	{
		size_t r = rank();

		return (mix(r * 2654435761u +
		    (static_cast<uint64_t>(generation[r]) << 40)) & 0x7fffffff);
	}

	/* An object always has the same size, whatever was drawn before. */
	double
	size(uint64_t object) const
	{
		std::mt19937_64 kept = generator;
		double bytes;

		generator.seed(mix(object * 7 + kind.number));
		bytes = kind.size();
		generator = kept;
		return (bytes);
	}
};

/*--------------------------------------------------------------------
 * The traces
 */

/* Return an index, in proportion to these weights. */
size_t
one_of(const double *weight, size_t n)
{
	double sum = 0, below = 0, at;
	size_t i;

	for (i = 0; i < n; i++)
		sum += weight[i];
	at = uniform() * sum;
	for (i = 0; i + 1 < n; i++) {
		below += weight[i];
		if (at < below)
			break;
	}
	return (i);
}

void
make_mix(size_t n, const std::function<void(size_t, double *)> &weigh)
{
	Class classes[] = {
		{ 1, 600000, .95, kWeb, .12 },
		{ 2, 300000, .8, kImage, .10 },
		{ 3, 100000, .75, kVideo, .15 },
		{ 4, 10000, .8, kDownload, .2 },
	};
	const double churn[] = { .02, .01, .01, .01 };
	double weight[4];

	for (size_t i = 0; i < n; i++) {
		weigh(i, weight);
		size_t c = one_of(weight, 4);

		classes[c].ask(c + 1);
		if (i % kChurn == kChurn - 1)
			for (c = 0; c < 4; c++)
				classes[c].churn(churn[c]);
	}
}

void
make_cdn(size_t n)
{
	make_mix(n, [n](size_t i, double *weight) {
		double swing = std::sin(2 * kPi * i / (n / 2.));

		weight[0] = .70 + .1 * swing;
		weight[1] = .2;
		weight[2] = .07 - .05 * swing;
		weight[3] = .03 - .02 * swing;
	});
}

void
make_adv(size_t n)
{
	make_mix(n, [n](size_t i, double *weight) {
		static const double mixes[3][4] = {
			{ .9, .08, .01, .01 },
			{ .1, .8, .05, .05 },
			{ .02, .08, .8, .10 },
		};

		std::copy_n(mixes[i / (n / 12) % 3], 4, weight);
	});
}

void
make_irm(size_t n)
{
	Class objects(1, 1000000, .9, kAny, 0);

	for (size_t i = 0; i < n; i++)
		objects.ask(1);
}

constexpr int kGood = 22, kHuge = 22, kScanner = 23;

void
make_ten(size_t n)
{
	std::vector<Class> pages, images, videos;
	Zipf share(kGood, .7);
	uint64_t scanned = 0, huge = 0;

	for (int t = 0; t < kGood; t++) {
		pages.push_back({ 10u + t, 20000, .9, kWeb, .1 });
		images.push_back({ 50u + t, 8000, .8, kImage, .1 });
		videos.push_back({ 90u + t, 2000, .8, kVideo, .1 });
	}
	for (size_t i = 0; i < n; i++) {
		double who = uniform();

		if (i >= n / 2 && who < .25) {
			request(kScanner, 0x700000000000ULL + scanned++,
			    std::exp(std::log(2e4) + normal()));
			continue;
		}
		if (i >= n / 2 && who < .30) {
			uint64_t object = 0x710000000000ULL + huge++ % 4000;

			request(kHuge, object, 2e6 + ((huge - 1) % 17) * 3e5);
			continue;
		}
		int t = static_cast<int>(share());
		double what = uniform(), video_part = t % 3 == 0 ? .15 : .02;

		if (what < .6)
			pages[t].ask(t);
		else if (what < 1 - video_part)
			images[t].ask(t);
		else
			videos[t].ask(t);
	}
}

const struct {
	const char	*name;
	void		(*make)(size_t);
} kTraces[] = {
	{ "cdn", make_cdn },
	{ "adv", make_adv },
	{ "irm", make_irm },
	{ "ten", make_ten },
};

/*--------------------------------------------------------------------
 * Output
 */

void
link_requests()
{
	std::unordered_map<uint64_t, int64_t> next;

	next.reserve(trace.size());
	for (int64_t i = trace.size() - 1; i >= 0; i--) {
		const uint64_t object = trace[i].object;
		auto at = next.find(object);

		trace[i].next = at == next.end() ? -1 : at->second;
		next[object] = i;
	}
}

int
fail(const std::string &what)
{
	std::fprintf(stderr, "generate: %s\n", what.c_str());
	return (2);
}

int
write_trace(const char *path)
{
	FILE *f = std::fopen(path, "wb");

	if (f == nullptr)
		return (fail(std::string(path) + ": " + std::strerror(errno)));
	bool whole = std::fwrite(trace.data(), sizeof trace[0], trace.size(),
	    f) == trace.size();
	if (std::fclose(f) != 0 || !whole)
		return (fail(std::string(path) + ": " + std::strerror(errno)));
	return (0);
}

/* Return a whole number from 1 to most, or 0. */
uint64_t
number(const char *text, uint64_t most)
{
	char *end;

	errno = 0;
	unsigned long long n = std::strtoull(text, &end, 10);
	return (*text >= '0' && *text <= '9' && *end == '\0' && errno == 0 &&
	    n <= most ? n : 0);
}

}	/* namespace */

int
main(int argc, char **argv)
{
	uint64_t n, seed;

	if (argc != 5)
		return (fail("use: generate cdn|adv|irm|ten REQUESTS SEED FILE"));
	n = number(argv[2], 1000000000);
	if (n < 12)
		return (fail(std::string("REQUESTS '") + argv[2] +
		    "': a whole number from 12 to 1000000000"));
	seed = number(argv[3], 4294967295);
	if (seed == 0)
		return (fail(std::string("SEED '") + argv[3] +
		    "': a whole number from 1 to 4294967295"));
	for (const auto &t : kTraces) {
		if (std::strcmp(t.name, argv[1]) != 0)
			continue;
		generator.seed(seed);
		trace.reserve(n);
		t.make(n);
		link_requests();
		return (write_trace(argv[4]));
	}
	return (fail(std::string("there is no trace '") + argv[1] +
	    "': use cdn, adv, irm or ten"));
}
