"""Six more sets of thirty memories and fifteen questions, of other subjects, for `bench.memory_recall`.

Written in one go, three and three, the questions without a look at what the ranking knows; they are not
changed to suit it. Eight harder ones stand in ``recall_fresh.txt``: a line a memory, trigger, resolution and question.
On networking, ci, mobile and pipelines nothing was chosen.
"""

from __future__ import annotations

from pathlib import Path

Memories = tuple[tuple[str, str], ...]
Questions = tuple[tuple[str, int], ...]

DATA: tuple[Memories, Questions] = (
    (
        (
            "Spark job dies with an out-of-memory error on the shuffle",
            "Raise the number of shuffle partitions",
        ),
        (
            "Airflow task is marked as failed though the script ended well",
            "Return the exit code of the wrapped command",
        ),
        (
            "Parquet files cannot be read after a column was renamed",
            "Read by position and cast, or rewrite the partition",
        ),
        ("Training loss becomes NaN after a few hundred steps", "Clip gradients and lower the learning rate"),
        (
            "Validation accuracy is far better than in production",
            "Split by customer, so that no one is on both sides",
        ),
        (
            "Duplicate rows appear in the warehouse after a backfill",
            "Merge on the business key instead of appending",
        ),
        (
            "Kafka consumer falls behind during the nightly load",
            "Add partitions and commit offsets in batches",
        ),
        (
            "dbt model takes an hour since the join on events",
            "Make it incremental and filter by the load date",
        ),
        ("CSV import shifts columns when a field holds a comma", "Quote every field and set the dialect"),
        (
            "Dashboards show yesterday's numbers until noon",
            "Run the refresh after the last extract, not at a fixed hour",
        ),
        ("Notebook results cannot be reproduced", "Fix the random seed and pin every package"),
        ("GPU sits idle while the data loader works", "Prefetch with several workers and pinned memory"),
        ("Feature values differ between training and serving", "Compute them in one function that both call"),
        ("Postgres query ignores the index on a timestamp", "Compare without a cast around the column"),
        ("Embeddings of short strings are all alike", "Add the category to the text before encoding"),
        ("Pandas merge multiplies the rows", "Check that the key is unique on the right-hand side"),
        ("S3 listing is slow for buckets with millions of keys", "Keep a manifest and list by prefix"),
        (
            "Streaming job counts late events twice after a restart",
            "Write with an idempotent key and a watermark",
        ),
        ("Currency amounts lose cents in the report", "Keep them as integers of the smallest unit"),
        (
            "Schema registry rejects the new message version",
            "Give new fields a default, so that readers stay compatible",
        ),
        (
            "Model file is too large for the repository",
            "Store weights in the artifact store and keep the hash",
        ),
        ("Outliers of one sensor ruin the average", "Use the median over the window"),
        ("Personal data appears in the debug output of the pipeline", "Mask mail addresses before logging"),
        ("Redshift vacuum blocks the morning reports", "Vacuum by table outside business hours"),
        ("Class imbalance makes the classifier predict one label", "Weight the loss by inverse frequency"),
        ("Time series forecast jumps at new year", "Add holidays as regressors"),
        ("Hyperparameter search repeats trials it has run", "Keep the study in a database and resume it"),
        ("Elasticsearch relevance is poor for German compounds", "Use a decompounder in the analyzer"),
        ("API extract stops after a hundred records", "Follow the next link until there is none"),
        ("Null island: points are plotted at latitude zero", "Drop rows whose geocoding failed"),
    ),
    (
        ("executor runs out of heap while redistributing data between nodes", 0),
        ("orchestrator reports an error for a step that succeeded", 1),
        ("the loss explodes to not-a-number early in the run", 3),
        ("model looks great offline and is poor with real users", 4),
        ("re-running history inserted the same records a second time", 5),
        ("message queue reader cannot keep up at night", 6),
        ("a comma inside a value breaks the spreadsheet upload", 8),
        ("two runs of the same experiment give different outcomes", 10),
        ("graphics card waits for input batches", 11),
        ("planner does a full scan although the date column is indexed", 13),
        ("joining two data frames gives more lines than expected", 15),
        ("enumerating objects in cloud storage takes forever", 16),
        ("we only ever get the first page from the partner's endpoint", 28),
        ("e-mails of customers are visible in the logs", 22),
        ("rare category is never predicted", 24),
    ),
)

DEVICES: tuple[Memories, Questions] = (
    (
        ("Watchdog resets the board during a long flash erase", "Feed the watchdog between sectors"),
        ("UART drops bytes at 921600 baud", "Use DMA with a ring buffer instead of an interrupt per byte"),
        (
            "I2C bus hangs after a brown-out",
            "Clock out nine pulses and send a stop before the first transfer",
        ),
        ("Stack overflow in the telemetry task", "Give the task 4 KB and turn on the high-water mark"),
        (
            "Battery drains overnight though the device sleeps",
            "Turn the sensor's pull-ups off before deep sleep",
        ),
        ("BLE connection breaks when the phone's screen is off", "Ask for a longer supervision timeout"),
        (
            "OTA update bricks devices with a full file system",
            "Write into the second slot and switch after the checksum",
        ),
        (
            "ADC readings jitter when the radio sends",
            "Sample between transmissions and average sixteen values",
        ),
        ("Clock drifts two seconds a day", "Discipline it by GPS or NTP every hour"),
        ("Motor stutters at low speed", "Raise the PWM frequency above hearing"),
        ("Linker says region FLASH overflowed", "Compile with -Os and leave out floating-point printf"),
        ("Unaligned access faults on the M0 core", "Copy packed fields with memcpy"),
        ("Priority inversion delays the control loop", "Use a mutex with priority inheritance"),
        ("Touch panel registers ghost presses", "Raise the threshold and filter three samples"),
        ("Simulator passes, hardware fails", "Initialise RAM in the start-up code; the simulator zeroes it"),
        ("SD card is corrupted after a power cut", "Sync after each record and mount with a journal"),
        ("CAN frames with the same id collide", "Give each node a range of ids of its own"),
        ("Camera image is green at night", "Lock the white balance when the gain is high"),
        ("Bootloader does not start the application", "Set the vector table offset before the jump"),
        ("USB device is not recognised by Windows", "Add the WinUSB descriptor"),
        ("Compiler optimises the busy flag away", "Declare it volatile"),
        ("Serial numbers repeat across a batch", "Derive them from the chip's unique id"),
        ("LoRa range is a tenth of the data sheet's", "Match the antenna and move it away from ground"),
        ("JTAG probe cannot attach once the firmware sleeps", "Connect under reset"),
        ("Temperature is two degrees too high", "Move the sensor away from the regulator"),
        ("Heap fragments after a week", "Allocate from fixed pools"),
        ("Display flickers while it is refreshed", "Draw into a second buffer and swap at vsync"),
        ("Provisioning in the factory takes three minutes a unit", "Flash over SWD in parallel fixtures"),
        ("Interrupt fires twice for one edge", "Clear the flag before leaving and read it back"),
        ("Rounding of fixed-point gains makes the filter unstable", "Keep guard bits and saturate"),
    ),
    (
        ("processor restarts by itself while memory is being wiped", 0),
        ("characters get lost on the fast serial line", 1),
        ("sensor bus is stuck after the voltage dipped", 2),
        ("standby current is too high, it is empty by morning", 4),
        ("wireless link is lost as soon as the handset is locked", 5),
        ("firmware upgrade leaves units dead", 6),
        ("analogue values are noisy during transmission", 7),
        ("real-time clock is wrong after some days", 8),
        ("program image no longer fits into the chip", 10),
        ("low priority thread holds a lock that the regulator needs", 12),
        ("files are damaged when someone pulls the plug", 15),
        ("debugger loses the target in low-power mode", 23),
        ("screen shows tearing when redrawn", 26),
        ("malloc fails after days of uptime", 25),
        ("variable shared with the handler never seems to change", 20),
    ),
)

APPS: tuple[Memories, Questions] = (
    (
        (
            "iOS app is rejected because a privacy manifest is missing",
            "Add PrivacyInfo.xcprivacy and list the APIs",
        ),
        ("Android build fails with duplicate classes", "Exclude the transitive module in Gradle"),
        ("Push notifications do not arrive on some phones", "Register the token again after each start"),
        ("Keyboard covers the input field", "Scroll the focused view above the inset"),
        ("List jumps to the top after going back", "Keep the scroll offset in the route's state"),
        ("Images are loaded again on each visit", "Send a cache header and an etag"),
        ("First paint takes four seconds", "Split the bundle and load the chart lazily"),
        ("Layout shifts when the banner appears", "Reserve its height"),
        ("Form loses what was typed when the session ends", "Save a draft in local storage"),
        ("Screen reader says only 'button'", "Give icons an accessible label"),
        ("Dark mode shows black text on a black card", "Use semantic colours instead of literals"),
        ("Checkout is submitted twice by a double click", "Disable the button and send an idempotency key"),
        ("Date picker is off by a day west of Greenwich", "Keep dates without a time as strings"),
        ("Deep link opens the home page instead of the article", "Declare the path in the association file"),
        ("Translations with plurals are wrong in Polish", "Use ICU message syntax with all categories"),
        ("Right-to-left languages mirror the logo", "Exclude images from mirroring"),
        ("Service worker serves the old version after a release", "Skip waiting and claim the clients"),
        ("Tests of animations fail at random in CI", "Turn animations off in the test theme"),
        ("Web socket reconnects in a tight loop", "Back off with jitter up to a minute"),
        ("Fonts flash while they load", "Preload them and use font-display: optional"),
        ("Uploaded photos are rotated", "Apply the EXIF orientation on the server"),
        ("Search field fires a request for every letter", "Debounce by 250 ms and cancel the last one"),
        ("Payment sheet hangs on a slow network", "Show progress and time out after thirty seconds"),
        ("State of the store is shared between users on the server", "Create the store per request"),
        ("Table with ten thousand rows freezes the tab", "Render only the visible rows"),
        ("Analytics events are lost when the page is closed", "Send them with a beacon"),
        ("App crashes on Android 8 when a vector is tinted", "Use the compat drawable"),
        ("Login with Apple returns no mail the second time", "Store it at the first sign-in"),
        ("Map pins overlap in cities", "Cluster them by zoom level"),
        ("Cookie banner blocks the tests", "Set the consent cookie before the page loads"),
    ),
    (
        ("store review refused our release for lack of a data use declaration", 0),
        ("dependency conflict: the same class is packaged two times", 1),
        ("messages are not delivered to a device in the background", 2),
        ("text box is hidden once the user starts typing", 3),
        ("position in the feed is forgotten on return", 4),
        ("start page is slow because too much javascript is fetched", 6),
        ("content moves when an ad is inserted", 7),
        ("blind users cannot tell what the icon does", 9),
        ("customer was charged two times after clicking quickly", 11),
        ("calendar shows the previous day for Americans", 12),
        ("users keep seeing the former build after deployment", 16),
        ("portrait pictures from phones show up sideways", 20),
        ("too many calls to the autocomplete endpoint", 21),
        ("one visitor sees data of another with server-side rendering", 23),
        ("big grid makes the browser unresponsive", 24),
    ),
)

GAMES: tuple[Memories, Questions] = (
    (
        ("Character falls through the floor at low frame rates", "Run the physics with a fixed time step"),
        ("Textures look blurry on distant walls", "Turn on anisotropic filtering"),
        ("Save games of the last version crash on load", "Write a version number and convert older saves"),
        ("Sound effects crackle when many play together", "Limit the voices and mix in a larger buffer"),
        ("Game stutters every few seconds because of garbage collection", "Reuse objects from a pool"),
        ("Enemies get stuck in doorways", "Shrink the navigation mesh by the agent's radius"),
        (
            "Multiplayer positions jump around for clients with high ping",
            "Interpolate between two server states",
        ),
        (
            "Shader compiles in the middle of a fight and freezes the frame",
            "Warm up all variants in the loading screen",
        ),
        (
            "Achievements are granted again after a reinstall",
            "Ask the platform which are unlocked before granting",
        ),
        (
            "Controller is not recognised when plugged in after the start",
            "Listen for device events, not only at start",
        ),
        ("Shadows flicker while the camera moves", "Snap the shadow map to whole texels"),
        (
            "Level takes a minute to load from a hard disk",
            "Pack the assets in the order in which they are read",
        ),
        ("Dialogue lines run out of the box in German", "Let the box grow and test with pseudo translations"),
        (
            "Random dungeon cannot be finished because the key lies behind its own door",
            "Place keys by a graph of reachable rooms",
        ),
        (
            "Inventory duplicates items when two players trade at once",
            "Move items in one transaction on the server",
        ),
        ("Animation slides: feet do not match the ground", "Drive the speed from the root motion"),
        ("Replays diverge after some minutes", "Use integers and a seeded generator in the simulation"),
        ("Build for the console exceeds the memory budget", "Stream textures and cap their resolution"),
        ("Menu cannot be used with the keyboard alone", "Give every widget a focus order"),
        ("Particles cost half of the frame on integrated graphics", "Draw them at half resolution"),
        ("Cheaters change their gold in memory", "Keep balances on the server only"),
        ("Leaderboard shows times that nobody can reach", "Check the replay before a score is accepted"),
        ("Colours are washed out on HDR screens", "Tone map into the display's colour space"),
        ("Push to the store fails since the icon has an alpha channel", "Flatten the icon before upload"),
        (
            "Water reflects things that are not on screen any more",
            "Fall back to a probe where the trace fails",
        ),
        ("Voice chat echoes", "Cancel the output signal from the microphone's"),
        ("Localisation keys show up instead of text", "Fail the build on a missing key"),
        ("Mod files with unknown fields stop the game", "Skip what is unknown and warn"),
        ("Quest stays open although the target was beaten", "Count kills of the whole party"),
        ("Touch controls cover the health bar on small phones", "Respect the safe area and scale by size"),
    ),
    (
        ("player drops out of the world on slow machines", 0),
        ("old progress file makes the program quit", 2),
        ("audio is distorted with lots of simultaneous effects", 3),
        ("short hitches at regular intervals from memory cleanup", 4),
        ("monsters cannot pass narrow openings", 5),
        ("other players teleport on bad connections", 6),
        ("hang when an effect is shown for the first time", 7),
        ("gamepad connected later does nothing", 9),
        ("translated text does not fit its panel", 12),
        ("generated map is impossible to complete", 13),
        ("people clone objects by exchanging them at the same moment", 14),
        ("recorded match plays back differently from what happened", 16),
        ("impossible records in the high score table", 21),
        ("placeholders instead of translated strings", 26),
        ("buttons overlap the life indicator on tiny displays", 29),
    ),
)

SCIENCE: tuple[Memories, Questions] = (
    (
        ("MPI job hangs when one rank skips the broadcast", "Let every rank take part in collective calls"),
        ("Simulation energy drifts over long runs", "Use a symplectic integrator"),
        (
            "Results differ between two machines in the last digits",
            "Fix the order of the reduction and turn off fast math",
        ),
        ("Solver does not converge on fine meshes", "Add a multigrid preconditioner"),
        ("Matrix product is ten times slower than expected", "Link against an optimised BLAS"),
        ("Checkpoint files fill the scratch space", "Keep the last two and compress them"),
        ("Fortran arrays arrive transposed in Python", "Ask for column order when they are wrapped"),
        ("Plot of a million points freezes the notebook", "Rasterise or bin before drawing"),
        ("Units of two instruments were mixed up", "Carry units with every quantity"),
        ("Fit returns a huge covariance", "Scale the parameters to the same size"),
        (
            "Slurm kills the job for using more memory than asked",
            "Request memory by core and measure the peak",
        ),
        ("Random numbers of the workers are correlated", "Spawn independent streams from one seed"),
        ("NetCDF reads are slow along the time axis", "Rechunk the file for the way it is read"),
        ("Genome alignment drops reads with soft clips", "Lower the minimum score"),
        ("Spectrum shows a peak at the mains frequency", "Notch out 50 Hz before the transform"),
        ("Integral near the singularity is inaccurate", "Substitute variables or use adaptive quadrature"),
        ("Citation keys break after merging bibliographies", "Generate keys from author, year and title"),
        (
            "Figures in the paper do not match the published data",
            "Build them in the pipeline from the archived file",
        ),
        ("Climate model crashes on leap years", "Use a calendar of the model, not of the system"),
        ("Image segmentation merges touching cells", "Split by a watershed on the distance map"),
        ("GPU kernel gives wrong sums for large arrays", "Accumulate in double precision"),
        ("License server rejects the batch nodes", "Reach it through the login node's tunnel"),
        ("Interpolation overshoots at steep edges", "Use a monotone cubic"),
        ("Docker images are not allowed on the cluster", "Convert them to Singularity"),
        ("Microscope stacks have their frames in the wrong order", "Sort by the time stamp in the metadata"),
        ("Sparse matrix becomes dense after inversion", "Solve the system instead of inverting"),
        ("P-values are too good because of many tests", "Correct for multiple comparisons"),
        ("Survey weights are ignored in the regression", "Pass them to a design-aware estimator"),
        ("Environment of an old analysis cannot be rebuilt", "Lock exact versions and archive the container"),
        ("GPS tracks jump across the antimeridian", "Unwrap longitudes before smoothing"),
    ),
    (
        ("parallel program never ends since a process misses a collective operation", 0),
        ("total energy is not conserved after many steps", 1),
        ("numbers are not bitwise equal on another computer", 2),
        ("linear algebra is far below the peak speed", 4),
        ("restart files eat all the disk", 5),
        ("rows and columns swapped when calling the old library", 6),
        ("browser becomes unresponsive when showing big scatter charts", 7),
        ("metres and feet confused", 8),
        ("scheduler terminated my run for exceeding its RAM reservation", 10),
        ("parallel Monte Carlo samples are not independent", 11),
        ("model stops on 29 February", 18),
        ("neighbouring nuclei are counted as a single object", 19),
        ("adding up many floats on the graphics card loses accuracy", 20),
        ("significance is inflated by running lots of hypotheses", 26),
        ("cannot reproduce results from two years ago because packages changed", 28),
    ),
)

SHOP: tuple[Memories, Questions] = (
    (
        ("Stock goes negative when two customers buy the last item", "Reserve with a conditional update"),
        ("Cart is empty after logging in", "Merge the guest cart into the account"),
        ("Coupon can be redeemed several times", "Make code and customer unique in the table"),
        ("VAT is wrong for deliveries abroad", "Take the rate from the delivery country"),
        ("Refund exceeds what was paid", "Check against the captured amount"),
        ("Product feed is refused by the comparison portal", "Escape ampersands and send UTF-8"),
        ("Confirmation mails land in the spam folder", "Set SPF, DKIM and an aligned sender"),
        ("Checkout breaks for addresses without a postal code", "Make it optional by country"),
        ("Category pages are slow with many filters", "Precompute facet counts"),
        ("Search engine indexes every sort order", "Set a canonical link"),
        ("Payment is captured though the order was cancelled", "Void the authorisation in the same step"),
        ("Prices flash in the wrong currency", "Render them on the server with the session's currency"),
        ("Images are huge on mobile phones", "Serve them by width in a modern format"),
        ("Address autocomplete sends personal data to a third party", "Proxy it and drop the name"),
        (
            "Nightly import deletes articles that the supplier left out once",
            "Deactivate after three missing deliveries",
        ),
        ("Bots buy limited sneakers in seconds", "Put a queue with a challenge before the sale"),
        ("Gift cards are guessed by brute force", "Longer codes and a lockout"),
        ("Order numbers have gaps and the auditor asks", "Draw numbers in the commit, not before"),
        ("Courier labels print in the wrong format", "Ask for ZPL at 203 dpi"),
        ("Reviews contain scripts", "Escape them and allow no markup"),
        ("Recommendation shows things already bought", "Filter by the order history"),
        ("Session is lost between the shop and the payment page", "Set SameSite to None on that cookie"),
        ("Black Friday traffic brings the site down", "Cache pages at the edge and shed load"),
        ("Return shipments are booked twice", "Use the parcel number as idempotency key"),
        ("Bundles ignore the discount of their parts", "Sum the discounted parts"),
        ("Password reset link works forever", "Let it expire after an hour and one use"),
        ("Warehouse export misses orders placed at midnight", "Use half-open time ranges"),
        ("Newsletter consent cannot be proved", "Store time, address and text of the opt-in"),
        ("Size chart differs between brands", "Map sizes by measured centimetres"),
        ("Analytics counts every order two times", "Fire the event on the first view of the receipt only"),
    ),
    (
        ("we sold more pieces than there were", 0),
        ("basket disappears once a visitor signs in", 1),
        ("same voucher accepted again and again", 2),
        ("tax is incorrect on international orders", 3),
        ("order mails are treated as junk", 6),
        ("cannot pay when the country has no zip", 7),
        ("listing is sluggish if lots of facets are selected", 8),
        ("money is taken although the customer called it off", 10),
        ("pictures are much too heavy for smartphones", 12),
        ("products vanish when a vendor file is incomplete", 14),
        ("automated buyers grab the whole drop", 15),
        ("cross-site scripting through customer comments", 19),
        ("shop is unavailable on peak days", 22),
        ("recovery mail can still be used weeks later", 25),
        ("purchases are tracked twice in the statistics", 29),
    ),
)

SETS: dict[str, tuple[Memories, Questions]] = {
    "data": DATA,
    "devices": DEVICES,
    "apps": APPS,
    "games": GAMES,
    "science": SCIENCE,
    "shop": SHOP,
}


def _fresh() -> dict[str, tuple[Memories, Questions]]:
    found = {}
    for part in Path(__file__).with_name("recall_fresh.txt").read_text("utf-8").split("# ")[1:]:
        name, *lines = part.strip().split("\n")
        rows = [line.split("|") for line in lines]
        questions = tuple((question, place) for place, (_, _, question) in enumerate(rows) if question)
        found[name] = tuple((trigger, resolution) for trigger, resolution, _ in rows), questions
    return found


SETS |= _fresh()
