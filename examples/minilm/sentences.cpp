// SPDX-License-Identifier: Apache-2.0
// Plain English of many subjects, so that the embeddings differ.
#include "sentences.hpp"

namespace minilm {

// A sentence goes over several lines.
// NOLINTBEGIN(bugprone-suspicious-missing-comma)

const std::vector<std::string> &batch_sentences() {
    static const std::vector<std::string> all = {
            "The ferry to the northern islands leaves twice a day in summer, but when the wind turns to the west the "
            "captain often decides to stay in the harbour until the next morning.",
            "After three weeks without rain the farmer opened the old gate by the river, and the water slowly found "
            "its way back into the ditches between the rows of beans.",
            "She keeps a notebook in the kitchen in which every loaf of bread has a page of its own, with the flour, "
            "the temperature of the room and the time it took to rise.",
            "The museum has lent its only portrait of the composer to a small town in the mountains, where it will "
            "hang next to the piano on which he wrote his last sonata.",
            "Engineers who inspected the bridge found that the bearings on the eastern side had moved by almost two "
            "centimetres since the heavy lorries began to use the road.",
            "A good dictionary does not only say what a word means today, it also shows how people wrote it three "
            "hundred years ago and from which language it was borrowed.",
            "When the telescope was pointed at the faint galaxy for eleven nights in a row, the astronomers could at "
            "last measure how fast the gas around its centre is turning.",
            "The court decided that the landlord must repair the heating before November and that the tenants may "
            "keep a fifth of the rent for every week in which the flats stay cold.",
            "Our neighbour trains guide dogs, and every spring a new puppy learns to wait at the crossing in front of "
            "our house while bicycles and buses rush past its nose.",
            "To save memory the program keeps its weights in four bits each and a scale for every thirty-two of them, "
            "and it multiplies them without ever unpacking the whole matrix.",
            "The doctor explained that the tablets should be taken with food, that they may make you sleepy at first, "
            "and that it takes about ten days until you notice any effect.",
            "In the second half the visitors defended with all their players, yet a long pass from the goalkeeper was "
            "enough to let the youngest striker of the league run free and score.",
            "Because the price of copper had doubled within a year, the company that makes cables for wind farms "
            "looked for a way to use aluminium in the parts that stay on land.",
            "The recipe asks for two ripe pears, a handful of walnuts and a soft blue cheese, all of it baked for "
            "twenty minutes on a thin crust made of butter and rye flour.",
            "Long before the railway came to the valley, traders crossed the pass with mules that carried salt in one "
            "direction and brought back wool, honey and tools of iron.",
            "The new schedule has fewer trains on Sunday evenings, which is why students who return to the city for "
            "their Monday lectures now have to stand for most of the way.",
            "Bees that live on the roofs of the city often produce more honey than those in the countryside, since "
            "parks and balconies are in bloom from early March to late October.",
            "He repaired the clock with a wheel that he had cut himself from a sheet of brass, and since then it has "
            "lost no more than a minute between one new year and the next.",
            "The insurance pays for water that comes from a broken pipe, but not for water that rises from the ground "
            "after a storm, unless you have signed the additional clause.",
            "Volcanic soil is rich in minerals and holds water well, so people have always settled on the slopes of "
            "the mountain although it has destroyed their villages four times.",
            "In her latest novel two sisters inherit a lighthouse and discover in its cellar the letters of a keeper "
            "who reported every ship that passed, and also those that never arrived.",
            "The library now lends out drills, tents and sewing machines as well as books, and on Saturday mornings "
            "there is somebody at the desk who shows you how to use them.",
            "If two processes map the same file, the system keeps a single copy of its pages in memory, and each of "
            "them sees the same bytes without reading the disk a second time.",
            "The central bank left its interest rate unchanged, saying that prices rise more slowly than a year ago "
            "while wages in the services are still growing faster than it would like.",
            "Under the floor of the chapel the workers found the outline of an older building with round towers, which "
            "nobody had mentioned in any of the documents that are known.",
            "The violin maker taps every piece of spruce with his knuckle before he buys it, and he says that the "
            "sound of the wood tells him more than its colour or its age.",
            "Children who learn two languages at home may start to speak a little later, but by the age of five they "
            "usually know as many words as others and switch between them with ease.",
            "A sensor in the vineyard measures how wet the leaves are, and when the night stays warm as well it sends "
            "a message that the vines should be treated against mildew at dawn.",
            "The expedition had to turn back forty kilometres before the pole, because the ice had begun to drift "
            "south faster than the four of them could walk towards the north.",
            "Before you paint the window frames, sand away the old layer, fill the cracks with putty, let everything "
            "dry for a day and wipe off the dust with a damp cloth.",
            "The airline apologised for the delay and offered a hotel, but as the last bus had already gone, most of "
            "the passengers spent the night on the benches near the gate.",
            "Sea water is pressed through very fine membranes that hold back the salt, which needs much less energy "
            "than boiling it but leaves a brine that has to be diluted with care.",
    };
    return all;
}

const std::vector<std::string> &questions() {
    static const std::vector<std::string> all = {
            "How do I keep my bread from going stale?",
            "Why is the night sky dark?",
            "What should I do when my laptop gets too hot?",
    };
    return all;
}

const std::vector<std::string> &answers() {
    static const std::vector<std::string> all = {
            "A loaf stays fresh longest in a closed wooden box or a cloth bag; the fridge dries it out.",
            "Light from the farthest stars has not had the time to reach us, since the universe is not infinitely old.",
            "Clean the fan and the vents of the computer with compressed air, and do not put it on a blanket.",
            "The bakery on the corner opens at six and sells out of rye rolls before nine.",
            "A telescope gathers more light than the eye because its mirror is so much larger.",
            "Batteries wear out sooner when they are always charged to the full.",
            "On hot days close the shutters in the morning and open the windows after sunset.",
            "The train to the airport leaves from platform four every half hour.",
    };
    return all;
}

// NOLINTEND(bugprone-suspicious-missing-comma)

} // namespace minilm
